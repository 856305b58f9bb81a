"""Vocabularies of every family, built in code, and the default model's real one."""

import json
from functools import cache

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, WordLevel

from core.models.cache import model_folder
from core.models.load import chat_template
from core.models.tiny import CHAT_TEMPLATE, tiny_tokenizer
from core.tokens import Vocabulary

GEMMA_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<turn>{{ m['role'] }}\n{{ m['content'] | trim }}<eos>\n"
    "{% endfor %}{% if add_generation_prompt %}<turn>model\n{% endif %}"
)


@cache
def byte_level() -> Vocabulary:
    """The tiny model's: 3 control tokens, 256 bytes, 19 merges, and two padding rows."""
    tokenizer = tiny_tokenizer()
    size = tokenizer.get_vocab_size() + 2
    end = tokenizer.token_to_id("<|im_end|>")
    return Vocabulary(tokenizer, size=size, end_ids=[end], chat_template=CHAT_TEMPLATE)


@cache
def smollm2() -> Vocabulary:
    """The default model's; it must have been fetched."""
    folder = model_folder("smollm2-135m")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Vocabulary(
        Tokenizer.from_file(str(folder / "tokenizer.json")),
        size=config["vocab_size"],
        end_ids=[config["eos_token_id"]],
        chat_template=chat_template(folder),
    )


def sentencepiece(*, prefixed: bool = False) -> Vocabulary:
    """Like Gemma's; ``prefixed``: like Llama 2's, with a space put before every text."""
    specials = ["<bos>", "<eos>", "<turn>"]
    merges = [("▁", "a"), ("h", "i"), ("▁", "hi"), ("法", "国")]
    entries = [*specials, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abehi.<>|法国"]
    entries += [left + right for left, right in merges]
    model = BPE(vocab={p: i for i, p in enumerate(entries)}, merges=merges, byte_fallback=True)
    tokenizer = Tokenizer(model)
    to_space = [normalizers.Replace(" ", "▁")]
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefixed:
        to_space.insert(0, normalizers.Prepend("▁"))
        back.append(decoders.Strip(" ", 1, 0))
    tokenizer.normalizer = normalizers.Sequence(to_space)
    tokenizer.decoder = decoders.Sequence(back)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in specials])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", 0)]
    )
    return Vocabulary(tokenizer, end_ids=[1], chat_template=GEMMA_TEMPLATE)


def words() -> Vocabulary:
    """Whole words only, as in a hand-written toy; the decoder puts spaces between them."""
    tokenizer = Tokenizer(WordLevel({"the": 0, "cat": 1, "sat": 2, "<end>": 3}))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return Vocabulary(tokenizer, end_ids=[3])

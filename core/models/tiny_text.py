"""The tokenizer and the chat template of the tiny models; no torch in here."""

from __future__ import annotations

from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

END: Final = "<|im_end|>"
SPECIALS: Final = ("<|endoftext|>", "<|im_start|>", END)
MERGES: Final = (
    ("t", "h"),
    ("th", "e"),
    ("Ġ", "t"),
    ("Ġ", "the"),
    ("i", "n"),
    ("a", "n"),
    ("Ġ", "a"),
    ("Ġ", "i"),
    ("Ġi", "s"),
    ("o", "f"),
    ("Ġ", "of"),
    ("e", "r"),
    ("r", "e"),
    ("Ġ", "c"),
    ("a", "l"),
    ("Ċ", "Ċ"),
    # the first two of the three bytes of a Chinese character, and all three of another
    ("æ", "³"),
    ("å", "Ľ"),
    ("åĽ", "½"),
)
CHAT_TEMPLATE: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def tiny_tokenizer() -> Tokenizer:
    """A byte-level BPE tokenizer: 3 control tokens, 256 bytes, and a few merges."""
    entries = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    entries += [left + right for left, right in MERGES]
    vocabulary = {piece: id for id, piece in enumerate(entries)}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=list(MERGES)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIALS])
    return tokenizer

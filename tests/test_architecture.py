"""The five floors of ARCHITECTURE.md, and other promises that can be read off the source.

Each check is a function from a folder to a list of sentences, so that the last tests can
show that it fails on a made-up bad project.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The longest matching name decides. A module that no line covers has no floor, and fails.
FLOORS = {
    "app": 5,
    "pages": 5,
    "ui": 4,
    "core.__main__": 4,
    "core.cli": 4,
    "core.decode": 3,
    "core.lens": 3,
    "core.lab": 3,
    "core.edits": 1,
    "core.recorded": 3,
    "core.heads": 3,
    "core.weight": 3,
    "core.ablation": 3,
    "core.position": 3,
    "core.residual": 3,
    "core.neurons": 3,
    "core.anatomy": 3,
    "core.engine": 2,
    "core.tokens": 2,
    "core.bpe": 2,
    "core.visible": 2,
    "core.text": 2,
    "core.models": 1,
    "core.trace": 1,
    "core.beam_records": 1,
    "core.compare_records": 1,
    "core.model_info": 1,
    "core.settings": 1,
    "core.geometry": 1,
    "core.amounts": 1,
    "core.faults": 1,
    "core.limits": 1,
}

# Part of the project → what it may never import, on any floor.
FORBIDDEN = {
    "core": {"streamlit", "plotly", "ui", "pages", "app"},
    "ui.figures": {"streamlit", "torch", "transformers"},
    "pages": {"torch", "transformers", "plotly"},
    "app": {"torch", "transformers", "plotly"},
}

# What stands in requirements.txt for a reason other than an import in this project.
NEEDED_BY_OTHERS = {
    "accelerate": "transformers loads GGUF files through it",
    "gguf": "transformers reads GGUF files with it",
    "pandas": "streamlit's tables",
}

BANNED = {
    "markup from strings": r"unsafe_allow_html|(?:inner|outer|insertAdjacent)HTML|document\.write",
    "code from data": r"\bpickle\b|(?<![.\w])eval\(|(?<![.\w])exec\(|new Function\(|torch\.load\(",
    "a model's own code": r"trust_remote_code\s*=\s*True",
    "a number that no seed gives": r"Math\.random|\brandom\.(?:random|randint|choice)\(",
    "a path of one machine": r"/w[o]rk/|/f[a]rm/|/t[m]p/\w|/home/\w|/Users/\w",
    "a registry's host": r"python[h]osted|pypi\.[o]rg|registry\.np[m]js|deb\.debia[n]",
    "something unfinished": r"\bTOD[O]\b|\bFIXM[E]\b|NotImplemente[d]",
}
CODE = ("*.py", "*.js", "*.mjs", "*.css", "*.html", "*.toml", "*.sh")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

PAGE_LINES = 60
MODULE_LINES = 300
FUNCTION_LINES = 60


def sources(root: Path, *, outside: tuple[str, ...] = ("tests",)) -> Iterator[Path]:
    for pattern in CODE:
        for path in sorted(root.rglob(pattern)):
            top = path.relative_to(root).parts[0]
            if not top.startswith(".") and top not in outside and "node_modules" not in path.parts:
                yield path


def modules(root: Path) -> dict[str, Path]:
    """Dotted name → file of everything that stands on a floor."""
    found = {}
    for path in (
        *root.glob("app.py"),
        *(p for d in ("core", "ui", "pages") for p in (root / d).rglob("*.py")),
    ):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, name: str, *, at_start: bool = False) -> set[str]:
    """Dotted names a module imports; ``at_start``: only those that importing it executes."""
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    found: set[str] = set()
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            base = ".".join(filter(None, (up if node.level else "", node.module)))
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif at_start and (isinstance(node, ast.FunctionDef | ast.Lambda) or _for_types(node)):
            continue
        nodes += ast.iter_child_nodes(node)
    return found


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def longest(name: str, table: dict) -> str | None:
    parts = name.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((n for n in names if n in table), None)


def floor(name: str) -> int | None:
    key = longest(name, FLOORS)
    return None if key is None else FLOORS[key]


def check_floors(root: Path) -> list[str]:
    known, wrong = modules(root), []
    for name, path in known.items():
        if name in ("core", "pages"):
            continue
        own = floor(name)
        if own is None:
            wrong.append(f"{name} stands on no floor")
            continue
        for target in sorted(imports(path, name) & known.keys() - {"core", "pages"}):
            there = floor(target)
            if there is not None and there > own:
                wrong.append(f"{name} (floor {own}) imports {target} (floor {there})")
    return wrong


def check_cycles(root: Path) -> list[str]:
    known = modules(root)
    graph = {n: (imports(p, n, at_start=True) & known.keys()) - {n} for n, p in known.items()}
    # `from package.module import x` also names the package, whose __init__ may gather its parts.
    graph = {n: {t for t in ts if not n.startswith(t + ".")} for n, ts in graph.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["a circle of imports: " + " → ".join(error.args[1])]
    return []


def check_forbidden(root: Path) -> list[str]:
    wrong = []
    for name, path in modules(root).items():
        parts = [part for part in FORBIDDEN if name == part or name.startswith(part + ".")]
        tops = {target.split(".")[0] for target in imports(path, name)}
        wrong += [f"{name} imports {t}" for p in parts for t in sorted(tops & FORBIDDEN[p])]
    return wrong


def check_first_paint(root: Path) -> list[str]:
    """Opening a page imports no torch, which takes seconds: the model is loaded beside it."""
    known = modules(root)
    graph = {name: imports(path, name, at_start=True) for name, path in known.items()}
    wrong = []
    for start in known:
        if start != "app" and not start.startswith("pages."):
            continue
        seen, waiting = {start: start}, [start]
        while waiting:
            name = waiting.pop()
            if graph[name] & {"torch", "transformers"}:
                wrong.append(f"opening {start} loads torch: {seen[name]}")
            for target in (graph[name] & known.keys()) - seen.keys():
                seen[target] = f"{seen[name]} → {target}"
                waiting.append(target)
    return wrong


def check_words(root: Path) -> list[str]:
    wrong = []
    for path in sources(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for what, pattern in BANNED.items():
                if re.search(pattern, line):
                    wrong.append(f"{path.relative_to(root)}:{number}: {what}: {line.strip()[:80]}")
    return wrong


def check_sizes(root: Path) -> list[str]:
    wrong = []
    for name, path in modules(root).items():
        text = path.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        limit = PAGE_LINES if name.startswith("pages.") else MODULE_LINES
        if lines > limit:
            wrong.append(f"{name} has {lines} lines, more than {limit}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > FUNCTION_LINES:
                    wrong.append(
                        f"{name}.{node.name} has {length} lines, more than {FUNCTION_LINES}"
                    )
    return wrong


def _python_strings(text: str) -> Iterator[tuple[int, str]]:
    """Strings as they are written (so an escaped code point names no character)."""
    docstrings = {
        (node.value.lineno, node.value.col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind in ("STRING", "FSTRING_MIDDLE") and token.start not in docstrings:
            yield token.start[0], token.string


def _script_lines(text: str) -> Iterator[tuple[int, str]]:
    bare = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(bare.splitlines(), 1):
        yield number, re.sub(r"(^|\s)//.*", "", line)


def check_words_for_readers(root: Path) -> list[str]:
    """Sentences for readers live in locales/, so no string of the code has Chinese in it."""
    wrong = []
    for path in sources(root, outside=("tests", "locales", "bench", "tools")):
        if path.suffix not in (".py", ".js", ".mjs"):
            continue
        # The names of the languages are written in themselves, in this one file.
        if path.relative_to(root).as_posix() == "ui/i18n.py":
            continue
        text = path.read_text(encoding="utf-8")
        lines = _python_strings(text) if path.suffix == ".py" else _script_lines(text)
        for number, line in lines:
            if CJK.search(line):
                wrong.append(f"{path.relative_to(root)}:{number}: {line.strip()[:80]}")
    return wrong


def check_requirements(root: Path) -> list[str]:
    """Every library imported is asked for by name and exact version, and none besides."""
    text = (root / "requirements.txt").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if row and row[0] not in "#-"]
    wrong = [f"no exact version: {row}" for row in rows if not re.fullmatch(r"[\w-]+==[\w.]+", row)]
    asked = {row.split("==")[0].lower().replace("-", "_") for row in rows}
    used = {t.split(".")[0] for n, p in modules(root).items() for t in imports(p, n)}
    used -= {"core", "ui", "pages", "app", ""} | sys.stdlib_module_names
    wrong += [f"{name} is imported and not in requirements.txt" for name in sorted(used - asked)]
    extra = asked - used - NEEDED_BY_OTHERS.keys()
    return wrong + [f"{name} is in requirements.txt and not imported" for name in sorted(extra)]


CHECKS = (
    check_floors,
    check_cycles,
    check_forbidden,
    check_first_paint,
    check_words,
    check_sizes,
    check_words_for_readers,
    check_requirements,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_project(check):
    assert check(ROOT) == []


def test_checks_see_the_whole_project():
    known = modules(ROOT)
    assert {"app", "core.trace", "core.engine.local", "ui.i18n"} <= known.keys()
    assert "core.trace" in imports(known["core.engine.local"], "core.engine.local")


BAD = [
    (check_floors, "core/trace.py", "from core.decode import choose\n", "core.trace (floor 1)"),
    (check_floors, "core/decode/a.py", "def f():\n    import ui.frame\n", "imports ui.frame"),
    (check_floors, "core/models/a.py", "from ..decode import choose\n", "imports core.decode"),
    (check_floors, "core/attic.py", "", "core.attic stands on no floor"),
    (check_cycles, "core/settings.py", "import core.trace\n", "a circle of imports"),
    (check_forbidden, "core/lens.py", "import plotly.express as px\n", "core.lens imports plotly"),
    (check_forbidden, "ui/figures/a.py", "from streamlit import x\n", "imports streamlit"),
    (check_forbidden, "pages/1_A.py", "import torch\n", "pages.1_A imports torch"),
    (
        check_first_paint,
        "core/settings.py",
        "import torch\n\nclass Settings: ...\n",
        "→ core.trace",
    ),
    (check_words, "ui/a.py", "st.markdown(x, unsafe_allow_" + "html=True)\n", "markup"),
    (check_words, "ui/components/a.js", "el.inner" + "HTML = token\n", "markup"),
    (check_words, "core/a.py", "value = ev" + "al(text)\n", "code from data"),
    (check_words, "core/a.py", "import pick" + "le\n", "code from data"),
    (check_words, "ui/components/a.mjs", "const u = Math.ran" + "dom()\n", "no seed"),
    (check_words, "core/models/a.py", "load(p, trust_remote_code" + "=True)\n", "own code"),
    (check_words, "core/a.py", "P = '/wo" + "rk/main'\n", "one machine"),
    (check_sizes, "pages/1_A.py", "x = 1\n" * 61, "pages.1_A has 61 lines"),
    (check_sizes, "core/lens.py", "def f():\n" + "    x = 1\n" * 60, "core.lens.f has 61 lines"),
    (check_words_for_readers, "ui/a.py", "st.write('\u4f60\u597d')\n", "ui/a.py:1"),
    (check_words_for_readers, "ui/a.js", "say('\u4f60\u597d')  // \u4f60\n", "ui/a.js:1"),
    (check_requirements, "core/a.py", "import requests\n", "requests is imported"),
    (check_requirements, "requirements.txt", "numpy>=1\n", "no exact version"),
    (
        check_requirements,
        "requirements.txt",
        "scipy==1.0\n",
        "scipy is in requirements.txt and not",
    ),
]


@pytest.mark.parametrize(("check", "file", "text", "said"), BAD)
def test_a_check_can_fail(tmp_path, check, file, text, said):
    good = {
        "app.py": "import ui.frame\n",
        "core/__init__.py": "",
        "core/decode/__init__.py": "import numpy\nfrom core.trace import Step\n\nchoose = Step\n",
        "core/trace.py": "from core.settings import Settings\n\nclass Step: ...\n",
        "core/settings.py": "class Settings: ...\n",
        "ui/__init__.py": "",
        "ui/frame.py": "from core.decode import choose\n\ndef f(m):\n    '\u56fd'\n    m.eval()\n",
        "ui/i18n.py": "NAMES = ('\u4e2d\u6587',)\n",
        "requirements.txt": "# reasons\nnumpy==2.0\n",
    }
    for name, content in good.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert [sentence for each in CHECKS for sentence in each(tmp_path)] == []
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    sentences = check(tmp_path)
    assert any(said in sentence for sentence in sentences), sentences

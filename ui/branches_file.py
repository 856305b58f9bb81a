"""The tree as a file: everything about every branch, and the branches read back. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from core.faults import Fault
from core.settings import RunSpec
from core.text.reader import repair
from ui.branches import BRANCHES_CAP, Branch
from ui.figures.branches import Path, Taken, parts

FORMAT: Final = "token-by-token branches"
VERSION: Final = 1
MOST_BYTES: Final = 5_000_000


def written(spec: RunSpec, paths: Sequence[Path], branches: Sequence[Branch]) -> bytes:
    """JSON: the question, and each path with its recipe, its tokens and its numbers.

    ``branches[i]`` is the recipe of ``paths[i]``.
    """
    current = next(path for path in paths if path.current)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "model": spec.model,
        "prompt": spec.prompt,
        "chat": spec.chat,
        "literal": spec.literal,
        "settings": asdict(spec.settings),
        "branches": [
            _path(path, branch, current) for path, branch in zip(paths, branches, strict=True)
        ],
    }
    return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _path(path: Path, branch: Branch, current: Path) -> dict[str, Any]:
    parting = parts(path, current)
    return {
        "name": path.name,
        "in_view": path.current,
        "forced": branch.forced,
        "rolls": branch.rolls,
        "seed": branch.seed,
        "made": branch.made,
        "text": repair(path.text),
        "tokens": len(path.tokens),
        "logprob": path.logprob if path.tokens and path.logprob > -float("inf") else None,
        "stop": path.stop,
        "parts_at_step": None if parting is None else parting + 1,
        "steps": [_token(i, token) for i, token in enumerate(path.tokens)],
        "problem": path.fault,
    }


def _token(index: int, token: Taken) -> dict[str, Any]:
    return {
        "step": index + 1,
        "id": token.id,
        "token": repair(token.label),
        "probability_model": token.p,
        "probability_filtered": token.after,
        "rank": token.rank,
        "rule": token.rule,
        "u": token.u,
    }


def opened(blob: bytes, spec: RunSpec) -> tuple[Branch, ...]:
    """The branches of a file of the same question. Raises Fault for any other file."""
    if len(blob) > MOST_BYTES:
        raise Fault("branches_file")
    try:
        content = json.loads(blob)
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise Fault("branches_file")
        question = [content[name] for name in ("model", "prompt", "chat", "literal")]
        found = tuple(_branch(part) for part in content["branches"][: BRANCHES_CAP + 1])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Fault("branches_file") from error
    if question != [spec.model, spec.prompt, spec.chat, spec.literal]:
        raise Fault("branches_other_text", model=str(question[0])[:100])
    return found


def _branch(part: dict[str, Any]) -> Branch:
    """Raises Fault, TypeError, ValueError or KeyError for anything else."""
    name, made = part["name"], part["made"]
    if not isinstance(name, str) or isinstance(made, bool) or not isinstance(made, int):
        raise TypeError(part)
    forced, rolls = (tuple((a, b) for a, b in part[key]) for key in ("forced", "rolls"))
    return Branch(name, forced, rolls, part["seed"], made)

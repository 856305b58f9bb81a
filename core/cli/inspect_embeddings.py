"""`inspect --what embeddings`: the rows of the embedding matrix that a prompt picks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from core.cli.question import Question
from core.cli.records import token_record
from core.geometry import principal

NEAR: Final = 8
COMPONENTS: Final = 3


def embeddings(question: Question) -> dict[str, Any]:
    """Each token's row: length, nearest rows, place on the map; ``--position`` picks one token.

    The map is of all different rows of the prompt, whichever token is picked, and only with
    ``--position`` are the row's numbers listed. Raises Fault where there is no matrix.
    """
    ids, tokens = question.ids, question.tokens
    engine, vocabulary = question.engine, question.vocabulary
    at = question.place("position", question.position, len(tokens))
    vectors = engine.embeddings(ids)
    order = {id: row for row, id in enumerate(dict.fromkeys(ids))}
    firsts = [ids.index(id) for id in order]
    picture = principal(vectors[firsts], COMPONENTS)
    chosen = range(len(tokens)) if at is None else (at,)
    near = {id: _near(question, id, vectors[ids.index(id)]) for id in {ids[i] for i in chosen}}
    rows = []
    for i in chosen:
        row = {
            **token_record(tokens[i]),
            "norm": float(np.linalg.norm(vectors[i].astype(np.float64))),
            "point": picture.coordinates[order[ids[i]]].tolist(),
            "neighbours": [
                {
                    "id": id,
                    "text": vocabulary.text([id]),
                    "label": vocabulary.label(id),
                    "cosine": c,
                }
                for id, c in near[ids[i]]
            ],
        }
        rows.append(row if at is None else {**row, "row": vectors[i].tolist()})
    return {
        "model": question.spec.model,
        "prompt": question.spec.prompt,
        "vocabulary": engine.info.vocabulary,
        "width": engine.info.width,
        "positions": engine.info.positions,
        "rows": len(order),
        "explained": picture.explained.tolist(),
        "tokens": rows,
    }


def _near(question: Question, id: int, row: np.ndarray) -> list[tuple[int, float]]:
    """The nearest rows of the whole vocabulary, the token's own left out."""
    found = zip(*question.engine.neighbours(row, NEAR + 1), strict=True)
    return [(int(other), float(cosine)) for other, cosine in found if other != id][:NEAR]


def embedding_lines(record: dict[str, Any]) -> Iterator[str]:
    shares = " + ".join(f"{100 * share:.1f}" for share in record["explained"])
    yield (
        f"rows of {record['width']} numbers; {record['rows']} different ones, "
        f"{shares} % of their variance along the first {COMPONENTS} components"
    )
    yield f"{'':>4}  {'id':>7}  {'token':<16}{'norm':>8}  {'point':<26}nearest rows (cosine)"
    for token in record["tokens"]:
        point = "".join(f"{x:>8.3f}" for x in token["point"])
        near = "  ".join(f"{n['label']} {n['cosine']:.3f}" for n in token["neighbours"][:5])
        yield (
            f"{token['position']:>4}  {token['id']:>7}  {token['label']:<16}"
            f"{token['norm']:>8.3f}  {point:<26}{near}"
        )
        if "row" in token:
            yield " ".join(f"{x:.4f}" for x in token["row"])

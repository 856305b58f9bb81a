"""Vectors as arrows: how alike two are, the plane that shows most of many, sums of words.

Plain linear algebra on rows, in float64; nothing here knows a model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


def cosine(
    rows: Float[np.ndarray, "row width"], vector: Float[np.ndarray, " width"]
) -> Float[np.ndarray, " row"]:
    """The cosine of the angle between each row and ``vector``, from -1 to 1.

    1 for the same direction, whatever the lengths; 0 where either has no length at all.
    """
    wide, arrow = rows.astype(np.float64), vector.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1) * np.linalg.norm(arrow)
    products = wide @ arrow
    found: np.ndarray = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def analogy(
    start: Float[np.ndarray, " width"],
    minus: Float[np.ndarray, " width"],
    plus: Float[np.ndarray, " width"],
) -> Float[np.ndarray, " width"]:
    """``start - minus + plus``: "king - man + woman" with the vectors as they are."""
    return np.asarray(start.astype(np.float64) - minus + plus)


@dataclass(frozen=True, eq=False)
class Principal:
    """A principal component analysis: the directions in which rows differ most."""

    coordinates: Float[np.ndarray, "row component"]
    """Of each row, measured from the mean of all rows."""
    explained: Float[np.ndarray, " component"]
    """Share of the rows' whole variance along each component, falling; 0 where nothing differs."""


def principal(rows: Float[np.ndarray, "row width"], components: int) -> Principal:
    """The first principal components of ``rows``, each row counted once.

    Components beyond the rank of the rows are 0. The sign of a component means nothing; here
    its largest coordinate is positive, so that the same rows always give the same picture.
    """
    count, width = rows.shape
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    # What is left of rows that are equal is rounding, which would be blown up to a picture.
    scale = float(np.abs(rows).max(initial=0.0))
    sizes[sizes <= scale * max(count, width) * np.finfo(np.float64).eps] = 0.0
    known = min(components, sizes.size)
    coordinates = np.zeros((count, components))
    coordinates[:, :known] = left[:, :known] * sizes[:known]
    tips = np.abs(coordinates).argmax(axis=0)
    coordinates *= np.where(coordinates[tips, np.arange(components)] < 0, -1.0, 1.0)
    explained = np.zeros(components)
    total = float((sizes**2).sum())
    if total > 0:
        explained[:known] = sizes[:known] ** 2 / total
    return Principal(coordinates, explained)

"""The logit lens: its last row is the model's own answer, and the norm is applied once."""

import numpy as np
import pytest

from core.engine.local import LocalEngine
from core.lens import distance_to_own, lens_column, logit_lens
from core.models.tiny import ARCHITECTURES, tiny_of


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_last_row_is_the_models_own_distribution(architecture):
    engine = LocalEngine(tiny_of(architecture))
    forward = engine.forward((3, 1, 4, 1, 5))
    own = np.exp(forward.logits.astype(np.float64) - forward.logits.max())
    own /= own.sum()
    followed = 42
    lens = logit_lens(engine, forward, followed, top=4)
    order = np.lexsort((np.arange(own.size), -forward.logits))
    assert lens.ids.shape == (engine.info.layers, 4)
    assert lens.ids[-1].tolist() == order[:4].tolist()
    assert lens.probabilities[-1] == pytest.approx(own[order[:4]], abs=1e-5)
    assert lens.followed_probability[-1] == pytest.approx(own[followed], abs=1e-5)
    assert lens.followed_rank[-1] == order.tolist().index(followed) + 1
    assert (np.diff(lens.probabilities, axis=1) <= 0).all()


def test_earlier_rows_come_from_earlier_layers(tiny):
    forward = tiny.forward((3, 1, 4))
    lens = logit_lens(tiny, forward, 7)
    rows = tiny.unembed(forward.residual[:, -1])
    assert lens.ids[0, 0] == rows[0].argmax()
    assert not np.allclose(rows[0], rows[-1])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_column_at_any_position_ends_in_what_the_model_says_there(architecture):
    engine = LocalEngine(tiny_of(architecture))
    ids = (3, 1, 4, 1, 5)
    whole = engine.forward(ids)
    for row in range(len(ids)):
        column = lens_column(engine, whole, row, (7, 3))
        alone = engine.forward(ids[: row + 1])
        assert column.favourite == int(alone.logits.argmax())
        assert column.followed[:2] == (7, 3)
        assert column.favourite in column.followed
        assert distance_to_own(column, alone) < 1e-5
        place = column.followed.index(column.favourite)
        assert column.followed_rank[-1, place] == 1


def test_equal_scores_are_ranked_by_id(tiny):
    class Flat:
        def unembed(self, hidden):
            return np.zeros((hidden.shape[0], 6), dtype=np.float32)

    column = lens_column(Flat(), tiny.forward((3, 1)), 0, (4,), top=3)
    assert column.ids.tolist() == [[0, 1, 2]] * 2
    assert column.followed == (4, 0)
    assert column.followed_rank.tolist() == [[5, 1]] * 2
    assert column.followed_probability == pytest.approx(1 / 6)


def test_layers_of_very_different_scores_are_each_a_distribution(tiny, monkeypatch):
    """One layer's scores may lie hundreds below another's."""
    forward = tiny.forward((3, 1, 4))
    plain = lens_column(tiny, forward, -1)
    unembed = tiny.unembed
    shift = np.array([[-500.0], [500.0]], dtype=np.float32)
    monkeypatch.setattr(tiny, "unembed", lambda hidden: unembed(hidden) + shift)
    shifted = lens_column(tiny, forward, -1)
    assert (shifted.ids == plain.ids).all()
    assert shifted.probabilities == pytest.approx(plain.probabilities, rel=1e-3)

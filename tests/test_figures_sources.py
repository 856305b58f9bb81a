"""Sources in the reader's language, and shares on axes."""

from __future__ import annotations

import pytest

from core.lab.shape_presets import presets
from ui.figures.charts import percents
from ui.figures.sources import dated, source_words
from ui.i18n import bound, catalog


def test_the_english_sentence_is_the_one_of_the_files():
    for preset in presets().values():
        assert source_words(preset.source, catalog("en")) == preset.source


def test_no_sentence_of_a_preset_stays_english_in_chinese():
    for preset in presets().values():
        said = source_words(preset.source, catalog("zh"))
        assert not any(word in said for word in (" of ", "copied", "others", "packaged"))
    assert dated("README: 62.5 tokens/s", "2026-11-30", catalog("zh")) == (
        bound("README: 62.5 tokens/s，2026\u201111\u201130")
    )


@pytest.mark.parametrize(
    ("high", "low", "texts"),
    [
        (1.0, 0.0, ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (0.99, 0.5, ["50 %", "60 %", "70 %", "80 %", "90 %"]),
        (0.0042, 0.0, ["0 %", "0.1 %", "0.2 %", "0.3 %", "0.4 %"]),
        (0.0, 0.0, ["0 %"]),
    ],
)
def test_shares_on_axes_are_written_with_a_space(high, low, texts):
    assert percents(high, low)["ticktext"] == texts

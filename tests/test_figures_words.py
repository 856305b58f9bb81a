"""Numbers for people."""

import pytest

from ui.figures.words import in_bytes, needed


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (12, "12 B"),
        (999, "999 B"),
        (46_080, "46.1 kB"),
        (999_400, "999 kB"),
        (999_600, "1 MB"),
        (538_060_032, "538 MB"),
        (1_072_392_704, "1.07 GB"),
        (80e9, "80 GB"),
        (141e9, "141 GB"),
        (2e15, "2,000 TB"),
    ],
)
def test_bytes_are_said_in_three_digits(count, said):
    assert in_bytes(count) == said


def test_what_is_needed_is_told_from_what_is_there():
    assert needed(141.1e9, 80e9) == "141 GB"
    assert needed(141.4e9, 141e9) == "141.4 GB"
    assert needed(141_002e6, 141e9) == "141.002 GB"
    assert needed(141e9, 141e9) == "141 GB"

"""The menu's parts: each page belongs to one, by the number that its file begins with."""

from ui.controls import GROUPS, group_of, page_files
from ui.i18n import LANGUAGES, catalog


def test_the_number_of_a_page_says_its_part():
    found = [group_of(f"pages/{n}_Name.py") for n in range(1, 15)]
    assert found == ["inside"] * 4 + ["decoding"] * 4 + ["engineering"] * 6


def test_the_pages_of_a_part_stand_together_and_every_part_has_a_name():
    parts = [group_of(address) for address, _ in page_files()]
    assert parts == sorted(parts, key=[name for _, name in GROUPS].index)
    for lang in LANGUAGES:
        names = [catalog(lang)(f"frame.group_{name}") for _, name in GROUPS]
        assert len(set(names)) == len(GROUPS)

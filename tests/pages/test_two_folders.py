"""Two folders that end in the same name are two models: no number of one is shown for the other.

What the pages remember for all readers must tell them apart.
"""

import pytest

from tests.families import saved
from tests.pages.app import data_of, open_app
from ui.state import store

PROMPT = "the cat sat on the mat, the cat"
PAGES = {
    "2_Embeddings": ("embeddings", ("neighbours", "map")),
    "3_Attention": ("heads_grid", ("pictures", "statistics")),
    "4_Layers": ("lens_map", None),
}


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    place = tmp_path_factory.mktemp("twins")
    names = [saved(place / letter / "model", seed) for seed, letter in enumerate("ab", start=1)]
    for name in names:
        store().request(name)
        assert store().wait(name, timeout=120).status == "ready"
    assert {store().engine(name).info.name for name in names} == {"model"}
    return names


@pytest.mark.parametrize("page", PAGES)
def test_each_model_shows_its_own_numbers(twins, page):
    component, fields = PAGES[page]
    first, second = (
        data_of(open_app(page, model=name, prompt=PROMPT, force="0:50"), component)
        for name in twins
    )
    if fields is None:
        assert first != second
    for field in fields or ():
        assert first[field] != second[field], field


def test_each_model_gives_its_own_reasons(twins):
    first, second = (
        data_of(
            open_app("3_Attention", model=name, prompt=PROMPT, why="gradient", force="0:50"),
            "attribution",
        )
        for name in twins
    )
    assert first["values"] != second["values"]

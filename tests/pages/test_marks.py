"""On the pages of the laboratory each number says where it comes from."""

import pytest

from tests.pages.app import open_app, unmarked

PAGES = ("9_KV_cache", "10_Precision", "11_Pruning", "12_Parallel", "13_Limits", "14_Training")


@pytest.mark.parametrize("page", PAGES)
def test_what_is_there_at_once_is_marked(page):
    assert unmarked(open_app(page, prompt="the thing is")) == []

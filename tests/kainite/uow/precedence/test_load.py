"""Where the precedence map comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError
from kainite.uow.precedence.levels import precedence_map
from kainite.uow.precedence.load import load_levels
from support.tables import SHOP


def test_a_file_of_pairs_comes_before_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("orders customer\n")
    assert load_levels(SHOP, tmp_path / "pairs") == {"orders": 1, "customer": 2}


def test_without_a_file_the_catalogue_tells() -> None:
    assert load_levels(SHOP, None) == precedence_map(SHOP)


def test_without_both_nothing_is_known() -> None:
    assert load_levels(None, None) == {}


def test_a_file_that_cannot_be_used_is_an_error_even_with_a_catalogue(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="gone"):
        load_levels(SHOP, tmp_path / "gone")
    (tmp_path / "ring").write_text("a b\nb a\n")
    with pytest.raises(CatalogueError, match="reference each other"):
        load_levels(SHOP, tmp_path / "ring")

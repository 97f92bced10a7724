from __future__ import annotations

from pathlib import Path

import pytest

from kainite.targets.sqlite.address import ADDRESS, path_of


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("sqlite:///shop.db", "sqlite:////etc/kainite/shop.db"),
        ("sqlite:///sub/shop.db", "sqlite:////etc/kainite/sub/shop.db"),
        ("sqlite:////data/shop.db", "sqlite:////data/shop.db"),
    ],
)
def test_a_relative_file_starts_from_the_settings_folder(written: str, read: str) -> None:
    assert ADDRESS.parse(written, Path("/etc/kainite")) == read


def test_the_path_is_what_follows_the_scheme() -> None:
    assert path_of("sqlite:////data/shop.db") == "/data/shop.db"
    assert path_of("sqlite:///shop?x.db") == "shop?x.db"

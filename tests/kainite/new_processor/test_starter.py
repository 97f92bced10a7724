"""The files of a starting point, and the folder that takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.new_processor.catalogue import EXAMPLES, Example
from kainite.new_processor.starter import PROPERTIES, README, starter, write
from kainite.settings import load

PERL = next(one for one in EXAMPLES if one.language == "perl")


@pytest.mark.parametrize(
    ("name", "application"),
    [
        ("orders", "kainite-orders"),
        ("my orders!", "kainite-my-orders"),
        ("../..", "kainite-processor"),
        ("x" * 200, "kainite-" + "x" * 92),
    ],
)
def test_the_application_is_named_after_the_folder(name: str, application: str, tmp_path: Path) -> None:
    write(starter(PERL, name), tmp_path / "new")

    assert load(tmp_path / "new" / PROPERTIES).leases.application == application


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.language}-{one.dialect}")
def test_the_readme_names_what_the_folder_holds(example: Example) -> None:
    files = starter(example, "orders")
    readme = files[README].decode()

    assert readme.startswith("# orders\n")
    assert {example.source, *example.beside} < files.keys()
    assert all(f"\n{command}\n" in readme for command in example.prepare)
    assert "{" not in readme


def test_what_a_folder_holds_is_not_overwritten(tmp_path: Path) -> None:
    for name in "dcba":
        (tmp_path / name).write_text("mine")

    with pytest.raises(SettingsError, match=r"is not empty \(a, b, c, …\)"):
        write({"a": b"yours"}, tmp_path)

    assert (tmp_path / "a").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError, match="cannot be written: Not a directory"):
        write({"a": b""}, tmp_path / "file" / "below")

"""Rights on a file, and how an exposure reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.settings.exposure.finding import Exposure, is_open_to_others, mode_of


@pytest.mark.parametrize(
    ("rights", "is_open"),
    [(0o600, False), (0o400, False), (0o700, False), (0o711, False), (0o640, True), (0o604, True), (0o620, True)],
)
def test_rights_for_others(tmp_path: Path, rights: int, is_open: bool) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(rights)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert is_open_to_others(mode_of(path)) is is_open
    assert is_open_to_others(mode_of(link)) is is_open


def test_what_is_not_there_is_open_to_nobody(tmp_path: Path) -> None:
    assert not is_open_to_others(mode_of(tmp_path / "none"))


def test_an_exposure_reads_as_a_line() -> None:
    assert str(Exposure("it is open", "the door", "close it")) == "the door: it is open; close it"

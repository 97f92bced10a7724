"""How a shelf is written: ``shelf:FILE``, with ``?key=…`` behind it where it is locked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kainite.settings.kinds.target_kinds import TargetAddress

PREFIX = "shelf:"


def path_of(url: str) -> str:
    return url.removeprefix(PREFIX).partition("?")[0]


def _parse(text: str, folder: Path) -> str:
    if not path_of(text):
        raise ValueError("names no file")
    return f"{PREFIX}{folder / path_of(text)}"


def _show(url: str) -> str:
    return PREFIX + path_of(url)


def _secrets(text: str) -> Iterable[str]:
    return filter(None, [text.partition("?key=")[2]])


ADDRESS = TargetAddress(_parse, _show, _secrets)

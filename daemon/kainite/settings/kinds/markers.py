r"""Converts the settings of the ``markers`` dialect to values: markers, and templates of a run instruction.

The grammar of a ``.properties`` file drops single backslashes: ``\x06`` arrives as ``x06``. In a file they are doubled
(``\\x06``), or a character is written as Java writes it (``\u0006``). The form without its backslash is refused: the
marker would be the text ``x06``, which may occur in the data.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final, cast

from kainite.base.marker_spelling import escape, unescape
from kainite.settings.kinds.values import ValueKind, command_line
from kainite.settings.placeholders import check_template

_WITHOUT_BACKSLASH: Final = re.compile(r"(x[0-9A-Fa-f]{2})+|[0-9A-Za-z]")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_=/.,:{}-]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def marker() -> ValueKind:
    """Returns the kind of one marker, with escapes."""
    allowed = r"text with the escapes `\n` `\r` `\t` `\0` `\xHH` (in a file their backslash is doubled)"

    def parse(value: str, folder: Path) -> bytes:
        if _WITHOUT_BACKSLASH.fullmatch(value):
            raise ValueError(
                f"{value!r} is no marker: a .properties file drops single backslashes, write {_doubled(value)}"
            )
        return unescape(value)

    return ValueKind(allowed, parse, escape, blanks=True)


def argument_templates() -> ValueKind:
    """Returns the kind of words for a command line, with placeholders."""
    words = command_line()

    def parse(value: str, folder: Path) -> object:
        check_template(value)
        return words.parse(value, folder)

    return ValueKind("words like `-e {eom} -E {eop}`", parse, _joined)


def variable_templates() -> ValueKind:
    """Returns the kind of ``NAME=TEMPLATE`` words."""
    words = argument_templates()

    def parse(value: str, folder: Path) -> tuple[tuple[str, str], ...]:
        pairs: list[tuple[str, str]] = []
        for word in cast(tuple[str, ...], words.parse(value, folder)):
            name, equals, template = word.partition("=")
            if not equals or not _VARIABLE.fullmatch(name):
                raise ValueError(f"must be words like NAME={{eom}}, not {word!r}")
            pairs.append((name, template))
        return tuple(pairs)

    return ValueKind("words like `NAME={eom}`", parse, lambda pairs: _joined(f"{n}={t}" for n, t in pairs))


def _joined(words: Iterable[str]) -> str:
    """Joins words as a shell reads them. Braces need no quotes: a shell leaves these as they are."""
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


def _doubled(value: str) -> str:
    return re.sub("x(?=..)", r"\\\\x", value) if value[0] == "x" and len(value) > 1 else f"\\\\{value}"

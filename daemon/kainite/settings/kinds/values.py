"""Converts the text of a property to a value, and back.

A :class:`ValueKind` says in words what is allowed, so that ``--check``, error messages and docs/properties.md say the
same. Parsing raises ``ValueError`` with what is wrong; the caller adds the key.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kainite.base.address import parse_address
from kainite.base.redaction import redacted, redacted_url, secrets_in_url, secrets_in_words, shown_command
from kainite.settings.kinds.target_kinds import address_of, expected
from kainite.settings.loader_command import command_words

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value.

    Attributes:
        allowed: says in words what may be written.
        parse: converts the text to the value, given the file's folder; raises ``ValueError``.
        show: converts the value to the text that would be written, without secrets.
        blanks: other white space than spaces belongs to the value, also at its ends.
        secrets: returns the secrets in a text, also in one that ``parse`` refuses.
    """

    allowed: str
    parse: Callable[[str, Path], object]
    show: Callable[[Any], str] = str
    blanks: bool = False
    secrets: Callable[[str], Iterable[str]] = lambda _: ()


def text(allowed: str, pattern: str = r".+") -> ValueKind:
    """Returns the kind of text that matches ``pattern`` as a whole."""
    compiled = re.compile(pattern)

    def parse(value: str, folder: Path) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"must be {allowed}, not {value!r}")
        return value

    return ValueKind(allowed, parse)


def stream_output() -> ValueKind:
    """Returns the kind of an output stream, ``stream:NAME`` in the file and the name in the program."""
    allowed, prefix = "stream:NAME, or nothing", "stream:"

    def parse(value: str, folder: Path) -> str | None:
        if not re.fullmatch(r"(stream:[a-zA-Z0-9_.-]{1,128})?", value):
            raise ValueError(f"must be {allowed}, not {value!r}")
        return value.removeprefix(prefix) or None

    return ValueKind(allowed, parse, lambda name: f"{prefix}{name}" if name else "")


def stream_names(arn: str) -> ValueKind:
    """Returns the kind of streams separated by commas, each a name or an ARN that matches the pattern ``arn``."""
    allowed = "streams separated by commas, each a name or an ARN, none twice"
    item = re.compile(rf"[A-Za-z0-9_.-]{{1,128}}|{arn}")

    def parse(value: str, folder: Path) -> tuple[str, ...]:
        found = tuple(name.strip() for name in value.split(",") if name.strip())
        if not found or len(set(found)) < len(found) or not all(map(item.fullmatch, found)):
            raise ValueError(f"must be {allowed}, not {value!r}")
        return found

    return ValueKind(allowed, parse, ", ".join)


def choice(
    values: type[StrEnum],
    *,
    excluded: tuple[StrEnum, ...] = (),
    instead: str = "",
) -> ValueKind:
    """Returns the kind of one member of an enum, in upper or lower case, as KCL reads its own enums.

    Args:
        values: the enum.
        excluded: members that cannot be written; ``instead`` says what to do in place of one.
    """
    members = {member.value.lower(): member for member in values if member not in excluded}
    allowed = "one of " + ", ".join(member.value for member in members.values())

    def parse(value: str, folder: Path) -> StrEnum:
        if value.lower() not in members:
            hint = f": {instead}" if value.upper() in excluded else ""
            raise ValueError(f"must be {allowed}, not {value!r}{hint}")
        return members[value.lower()]

    return ValueKind(allowed, parse)


def flag(*, inverted: bool = False) -> ValueKind:
    """Returns the kind of true or false, in KCL's spellings; what Java would silently take for false is refused.

    Args:
        inverted: the key switches off what its field switches on.
    """

    def parse(value: str, folder: Path) -> bool:
        if value.lower() not in _TRUE | _FALSE:
            raise ValueError(f"must be true or false, not {value!r}")
        return (value.lower() in _TRUE) != inverted

    return ValueKind("true or false", parse, lambda value: "true" if value != inverted else "false")


def whole(low: int, high: int | None = None, unit: str = "") -> ValueKind:
    """Returns the kind of a whole number within bounds, both included."""
    allowed = " ".join(filter(None, ["a whole number", f"of {unit}" if unit else "", _bounds(low, high)]))

    def parse(value: str, folder: Path) -> int:
        return _whole(value, low, high, allowed)

    return ValueKind(allowed, parse)


def millis(low: int, high: int | None = None) -> ValueKind:
    """Returns the kind of a time: milliseconds in the file, seconds in the program."""
    allowed = f"milliseconds {_bounds(low, high)}"

    def parse(value: str, folder: Path) -> float:
        return _whole(value, low, high, allowed) / 1000

    return ValueKind(allowed, parse, lambda value: str(round(value * 1000)))


def seconds(low: int, high: int | None = None) -> ValueKind:
    """Returns the kind of a time in whole seconds, in the file and in the program."""
    allowed = f"whole seconds {_bounds(low, high)}"

    def parse(value: str, folder: Path) -> float:
        return float(_whole(value, low, high, allowed))

    return ValueKind(allowed, parse, lambda value: f"{value:.0f}")


def decimal() -> ValueKind:
    """Returns the kind of a number above 0, with or without decimals."""
    allowed = "a number above 0"

    def parse(value: str, folder: Path) -> float:
        if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", value) or not float(value):
            raise ValueError(f"must be {allowed}, not {value!r}")
        return float(value)

    return ValueKind(allowed, parse)


def duration() -> ValueKind:
    """Returns the kind of a duration as ISO 8601 writes it; it stays text."""
    pattern = r"P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?"
    return text("a duration like PT15M or P1D", pattern)


def path() -> ValueKind:
    """Returns the kind of a path; a relative one starts from the folder of the settings file."""

    def parse(value: str, folder: Path) -> Path:
        return (folder / value).absolute()

    return ValueKind("a path, from this file's folder", parse)


def address() -> ValueKind:
    """Returns the kind of an address to listen on or to connect to."""
    return ValueKind("host:port", lambda value, _: parse_address(value))


def command_line() -> ValueKind:
    """Returns the kind of a command line: words separated by spaces, quoted as in a shell where they hold spaces."""
    return ValueKind(
        "a command line",
        lambda value, _: command_words(value),
        shown_command,
        secrets=_secrets_in_command,
    )


def names() -> ValueKind:
    """Returns the kind of names separated by commas."""

    def parse(value: str, folder: Path) -> tuple[str, ...]:
        return tuple(name.strip() for name in value.split(",") if name.strip())

    return ValueKind("names separated by commas", parse, ",".join)


def command_lines() -> ValueKind:
    """Returns the kind of command lines separated by commas, each quoted as in a shell where it needs to be."""
    allowed = "command lines separated by commas, such as `python /srv/report.py, kainite apply`"

    def parse(value: str, folder: Path) -> tuple[str, ...]:
        try:
            return tuple(shlex.join(words) for line in value.split(",") if (words := shlex.split(line)))
        except ValueError as error:
            raise ValueError(f"must be {allowed}, not {value!r}: {error}") from error

    return ValueKind(allowed, parse, ", ".join)


def members(*allowed_names: str) -> ValueKind:
    """Returns the kind of some of the given names, separated by commas."""
    allowed = f"some of {', '.join(allowed_names)}, separated by commas"

    def parse(value: str, folder: Path) -> tuple[str, ...]:
        found = tuple(name.strip() for name in value.split(",") if name.strip())
        if not found or not set(found) <= set(allowed_names):
            raise ValueError(f"must be {allowed}, not {value!r}")
        return found

    return ValueKind(allowed, parse, ",".join)


def http_url() -> ValueKind:
    """Returns the kind of the address of a service."""
    allowed = "an address like http://localhost:4566"

    def parse(value: str, folder: Path) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            # What was not understood may hold a password anywhere.
            raise ValueError(f"must be {allowed}" + ("" if "@" in value else f", not {redacted(value)!r}"))
        return value

    return ValueKind(allowed, parse, redacted_url, secrets=secrets_in_url)


def target() -> ValueKind:
    """Returns the kind of a target: the address of one of the kinds of targets."""

    def parse(value: str, folder: Path) -> str:
        address = address_of(value)
        if address is None:
            # The text is not repeated: what was not understood may hold a password anywhere.
            raise ValueError(f"must be {expected()}")
        return address.parse(value, folder)

    return ValueKind(expected(), parse, show_target, secrets=_secrets_in_target)


def show_target(value: str) -> str:
    """Returns a target without its secrets: an address without its password, a loader's command without its own."""
    address = address_of(value)
    return address.show(value) if address else redacted_url(value)


def _secrets_in_target(value: str) -> Iterable[str]:
    address = address_of(value)
    return address.secrets(value) if address else secrets_in_url(value)


def _secrets_in_command(value: str) -> Iterable[str]:
    try:
        return secrets_in_words(command_words(value))
    except ValueError:
        return secrets_in_words(value.split())


def _whole(value: str, low: int, high: int | None, allowed: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        raise ValueError(f"must be {allowed}, not {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(f"must be {allowed}, not {number}")
    return number


def _bounds(low: int, high: int | None) -> str:
    return f"from {low}" if high is None else f"from {low} to {high}"


TABLE_NAME = text("a DynamoDB table name (3 to 255 letters, digits, _ . -)", r"[A-Za-z0-9_.-]{3,255}")

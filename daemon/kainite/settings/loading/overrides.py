"""Reads settings from the environment and the command line, in relaxed spelling.

==============================  ==================================================================
``--stream-name X``             an option of ``kainite run``, also ``--streamName=X`` and so on
``KAINITE_STREAM_NAME``         the environment, for every key
``STREAM_NAME``                 the environment, for KCL's keys, spelled exactly so
==============================  ==================================================================

A key of one stream keeps its spelling, since the stream's name has a case, dashes and dots of its own:
``--stream.NAME.KEY=X``, ``KAINITE_stream.NAME.KEY``.

An option wins over the environment, the environment over the file, and ``KAINITE_STREAM_NAME`` over
``STREAM_NAME``. The spelling without ``KAINITE_`` has exceptions (:data:`NOT_BARE`): other programs use the same
names, and a lease table or a worker's name that changes unnoticed costs much.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kainite.base.errors import SettingsError
from kainite.settings.keys.retired import RETIRED
from kainite.settings.keys.table import KCL_KEYS, KEYS
from kainite.settings.keys.without_effect import WITHOUT_EFFECT
from kainite.settings.several import stream_key

PREFIX = "KAINITE_"
NOT_BARE = frozenset({"TABLE_NAME", "WORKER_ID", "WORKER_IDENTIFIER"})
"""Names that often mean something else; of these only ``KAINITE_TABLE_NAME`` and so on are read."""

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[.]")
_KCL = [spelling for key in KCL_KEYS for spelling in (key.name, *key.aliases)] + list(WITHOUT_EFFECT)
SPELLINGS: tuple[str, ...] = tuple(
    dict.fromkeys([*(spelling for key in KEYS for spelling in (key.name, *key.aliases)), *WITHOUT_EFFECT])
)


@dataclass(frozen=True, slots=True)
class GivenText:
    """A key's text, and where it comes from.

    Attributes:
        text: the value as it is written.
        spelling: the key as it is written.
        origin: ``file``, ``environment STREAM_NAME`` or ``command line``.
    """

    text: str
    spelling: str
    origin: str


def relaxed(spelling: str) -> str:
    """Returns a spelling without case and separators; it is different for every two keys."""
    return re.sub(r"[-_.\s]", "", spelling).lower()


_BY_RELAXED: Mapping[str, str] = {relaxed(spelling): spelling for spelling in (*SPELLINGS, *RETIRED)}


def environment_name(key: str) -> str:
    """Returns a key as the environment spells it: ``STREAM_NAME`` for ``streamName``."""
    return _WORD.sub("_", key).upper()


def option_name(key: str) -> str:
    """Returns a key as the command line spells it: ``--stream-name`` for ``streamName``."""
    return "--" + _WORD.sub("-", key).lower()


_BARE: Mapping[str, str] = {name: spelling for spelling in _KCL if (name := environment_name(spelling)) not in NOT_BARE}


def from_environment(environment: Mapping[str, str]) -> tuple[dict[str, GivenText], tuple[str, ...]]:
    """Returns keys by their spelling in a file, and the names with the prefix ``KAINITE_`` that no key has."""
    found: dict[str, GivenText] = {}
    unknown: list[str] = []
    for name, value in sorted(environment.items(), key=lambda item: item[0].startswith(PREFIX)):
        if not value.strip():
            continue
        prefixed = name.startswith(PREFIX)
        key = _key_named(name.removeprefix(PREFIX)) if prefixed else _BARE.get(name)
        if key is None and prefixed:
            unknown.append(name)
        elif key is not None:
            found[key] = GivenText(value.strip(), key, f"environment {name}")
    return found, tuple(unknown)


def from_options(arguments: Iterable[str]) -> tuple[dict[str, GivenText], tuple[str, ...]]:
    """Returns keys by their spelling in a file, and the arguments that are no options.

    Args:
        arguments: ``--stream-name X`` or ``--stream-name=X``, mixed with positional arguments.

    Raises:
        SettingsError: an option means no key, or has no value.
    """
    found: dict[str, GivenText] = {}
    positional: list[str] = []
    left = iter(arguments)
    for argument in left:
        if not argument.startswith("-") or argument == "-":
            positional.append(argument)
            continue
        option, equals, value = argument.partition("=")
        key = _key_of(option)
        text = value if equals else next(left, "")
        if not text.strip() or (not equals and text.startswith("--")):
            raise SettingsError(f"{option} needs a value: {option} VALUE")
        found[key] = GivenText(text.strip(), key, "command line")
    return found, tuple(positional)


def _key_of(option: str) -> str:
    key = _key_named(option.removeprefix("--")) if option.startswith("--") else None
    if key is not None:
        return key
    near = difflib.get_close_matches(relaxed(option), map(relaxed, SPELLINGS), n=1, cutoff=0.75)
    hint = f": did you mean {option_name(_BY_RELAXED[near[0]])}?" if near else ""
    raise SettingsError(f"there is no option {option}{hint} (each key of a settings file is one)")


def _key_named(spelling: str) -> str | None:
    """Returns the key that a spelling behind ``KAINITE_`` or ``--`` means; None for none."""
    return spelling if stream_key(spelling) else _BY_RELAXED.get(relaxed(spelling))

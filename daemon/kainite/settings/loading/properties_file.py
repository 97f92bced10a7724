"""The text of a ``.properties`` file: keys and their texts, by the rules of ``java.util.Properties``."""

from __future__ import annotations

import codecs
from pathlib import Path

import javaproperties

from kainite.base.errors import SettingsError
from kainite.settings.keys.table import KEY_BY_SPELLING, KEYS
from kainite.settings.loading.overrides import GivenText

_CREDENTIALS = {key.name.lower(): key.name for key in KEYS if key.field == "credentials"}


def read_properties(path: Path) -> tuple[dict[str, GivenText], tuple[str, ...]]:
    """Returns keys and texts of a file, by the rules of ``java.util.Properties``: Latin-1, the last of two wins.

    Surrounding space is removed, and a key without a value counts as absent. A byte order mark is removed too: editors
    write one before the first key, and Java takes it for a part of that key. The keys for credentials are read in any
    case, as in KCL.

    Returns:
        The keys, and a warning for each key that is repeated with another value.

    Raises:
        SettingsError: the file cannot be opened, is no text, or holds a broken ``\\u`` escape.
    """
    try:
        contents = path.read_bytes().removeprefix(codecs.BOM_UTF8)
        pairs = javaproperties.loads(contents, object_pairs_hook=list)
    except OSError as error:
        raise SettingsError(f"settings file {path}: {error.strerror}") from error
    except javaproperties.InvalidUEscapeError as error:
        raise SettingsError(f"settings file {path}: {error}") from error
    if b"\0" in contents:
        raise SettingsError(f"settings file {path}: is no text, or UTF-16: it holds NUL bytes; save it as UTF-8")
    properties: dict[str, str] = dict(pairs)
    twice = dict.fromkeys(key for key, value in pairs if value != properties[key])
    given = {key: GivenText(_trimmed(key, value), key, "file") for key, value in properties.items()}
    return (
        {_CREDENTIALS.get(key.lower(), key): value for key, value in given.items() if value.text},
        tuple(f"{key}: stands in the file more than once; the last one counts, as in Java" for key in twice),
    )


def _trimmed(spelling: str, value: str) -> str:
    key = KEY_BY_SPELLING.get(spelling)
    return value.strip(" ") if key is not None and key.kind.blanks else value.strip()

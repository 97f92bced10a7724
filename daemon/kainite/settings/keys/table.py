"""The table of every key that has an effect, read from the fields of the sections.

Parsing, ``kainite run --check``, error messages, the answers to SIGHUP and ``docs/properties.md`` are derived from it.
A section is named by its path in :class:`~kainite.settings.settings.Settings`, such as ``log`` or ``child.markers``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, get_type_hints

from kainite.settings.key import METADATA, SectionTitle, SettingKey
from kainite.settings.settings import Settings

Values = dict[tuple[str, str], Any]
"""Values by section and field."""


class Section(NamedTuple):
    """A section: its class, its title in docs/properties.md, and what stands for the placeholders in its keys."""

    kind: type[Any]
    title: str
    words: Mapping[str, str]


def _sections(owner: type[Any], prefix: str) -> Iterator[tuple[str, Section]]:
    """Yields each section in a dataclass by its path, and the sections within it behind it."""
    types = get_type_hints(owner)
    for field in dataclasses.fields(owner):
        title = field.metadata.get(METADATA)
        if isinstance(title, SectionTitle):
            kind: type[Any] = types[field.name]
            yield prefix + field.name, Section(kind, title.title, title.words)
            yield from _sections(kind, f"{prefix}{field.name}.")


def _keys(name: str, section: Section) -> Iterator[SettingKey]:
    """Yields the keys of a section's fields, with the section's words in place of placeholders."""
    for field in dataclasses.fields(section.kind):
        key = field.metadata.get(METADATA)
        if isinstance(key, SettingKey):
            placed = dataclasses.replace(key, section=name, field=field.name)
            yield _filled(placed, section.words) if section.words else placed


def _filled(key: SettingKey, words: Mapping[str, str]) -> SettingKey:
    name, meaning, otherwise = (text.format_map(words) for text in (key.name, key.meaning, key.otherwise))
    return dataclasses.replace(key, name=name, meaning=meaning, otherwise=otherwise)


SECTIONS: Mapping[str, Section] = dict(_sections(Settings, ""))

_ALL = [key for name, section in SECTIONS.items() for key in _keys(name, section)]
KCL_KEYS: tuple[SettingKey, ...] = tuple(key for key in _ALL if key.is_kcls)
"""KCL's keys that have an effect here, with KCL's meaning (docs/kcl.md, *Settings*)."""

POLLING_KEYS = tuple(key for key in KCL_KEYS if any(alias.startswith("pollingConfig.") for alias in key.aliases))
"""The keys of which any one makes ``retrievalMode=DEFAULT`` mean polling, as in Java."""

OWN_KEYS: tuple[SettingKey, ...] = tuple(key for key in _ALL if not key.is_kcls)
KEYS: tuple[SettingKey, ...] = KCL_KEYS + OWN_KEYS
KEY_BY_SPELLING: Mapping[str, SettingKey] = {spelling: key for key in KEYS for spelling in (key.name, *key.aliases)}

DEFAULTS: Values = {
    (name, field.name): field.default
    for name, section in SECTIONS.items()
    for field in dataclasses.fields(section.kind)
    if field.default is not dataclasses.MISSING
}


def default_text(key: SettingKey) -> str:
    """Returns a key's default as it would be written in a file, or where the default comes from."""
    if key.otherwise:
        return key.otherwise
    value = DEFAULTS.get((key.section, key.field))
    return "" if value is None else key.kind.show(value)


def value_of(settings: Settings, key: SettingKey) -> Any:
    """Returns the value of a key in the settings."""
    return attrgetter(f"{key.section}.{key.field}")(settings)

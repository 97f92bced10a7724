"""One key of a settings file, stated on the field that it fills.

A section is a frozen dataclass. A field with a key is written as a call of :func:`kcl` (a key that KCL has) or of
:func:`own` (one that only Kainite has); a field that must be given has ``field(metadata=kcl_key(…))``. A field without
a key is a constant, or follows from others. :mod:`kainite.settings.keys.table` reads the keys from the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from kainite.settings.kinds.values import ValueKind

T = TypeVar("T")

METADATA = "kainite.settings"


class Reload(StrEnum):
    """The time at which a changed value takes effect, when SIGHUP makes the daemon read its file again."""

    NOW = "now"
    NEXT_CHILD = "at the next start of a child"
    NEXT_JOB = "when the apply job is started again"
    NEXT_EXTRACT = "when kainite extract is started again"
    RESTART = "when the daemon is started again"

    @property
    def is_followed(self) -> bool:
        """Tells whether the running daemon takes the new value over by itself."""
        return self in (Reload.NOW, Reload.NEXT_CHILD)


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key of the file.

    Attributes:
        name: the key as it is written.
        kind: says what may be written.
        reload: says when a changed value takes effect.
        meaning: says in one sentence what the key does.
        is_kcls: the key is one of KCL's, with KCL's meaning (docs/kcl.md, *Settings*).
        aliases: other spellings; ``name`` wins where both are set.
        otherwise: says in words where a missing value comes from, unless the field has a default.
        required: the file must set the key (or, for the stream, ``streamArn``).
        section, field: the place in :class:`~kainite.settings.Settings` that the key fills, such as ``child.markers``
            and ``eom``; the table fills them in.
    """

    name: str
    kind: ValueKind
    reload: Reload
    meaning: str
    is_kcls: bool
    aliases: tuple[str, ...] = ()
    otherwise: str = ""
    required: bool = False
    section: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class SectionTitle:
    """The statement, on a field of the settings, that the field is a section with keys.

    Attributes:
        title: the section's title in docs/properties.md.
        words: what stands for each placeholder in the texts of the section's keys, for a section that occurs more than
            once; empty: the texts have no placeholders.
    """

    title: str
    words: Mapping[str, str]


def section(title: str, **words: str) -> Mapping[str, SectionTitle]:
    """Returns the metadata of a field that is a section; see :class:`SectionTitle`."""
    return {METADATA: SectionTitle(title, words)}


def kcl(
    name: str,
    kind: ValueKind,
    reload: Reload,
    meaning: str,
    *,
    default: T,
    otherwise: str = "",
    aliases: tuple[str, ...] = (),
    secret: bool = False,
) -> T:
    """Returns the dataclass field that a key of KCL fills; ``repr`` leaves out one that may hold a secret."""
    metadata = kcl_key(name, kind, reload, meaning, otherwise=otherwise, aliases=aliases)
    return field(default=default, repr=not secret, metadata=metadata)


def own(
    name: str,
    kind: ValueKind,
    reload: Reload,
    meaning: str,
    *,
    default: T,
    otherwise: str = "",
    secret: bool = False,
) -> T:
    """Returns the dataclass field that a key of Kainite's own fills; ``repr`` leaves out one that may hold a secret."""
    return field(default=default, repr=not secret, metadata=own_key(name, kind, reload, meaning, otherwise=otherwise))


def kcl_key(
    name: str,
    kind: ValueKind,
    reload: Reload,
    meaning: str,
    *,
    otherwise: str = "",
    aliases: tuple[str, ...] = (),
    required: bool = False,
) -> Mapping[str, SettingKey]:
    """Returns the metadata of a field without a default, which a key of KCL fills."""
    return {METADATA: SettingKey(name, kind, reload, meaning, True, aliases, otherwise, required)}


def own_key(
    name: str, kind: ValueKind, reload: Reload, meaning: str, *, otherwise: str = ""
) -> Mapping[str, SettingKey]:
    """Returns the metadata of a field without a default, which a key of Kainite's own fills."""
    return {METADATA: SettingKey(name, kind, reload, meaning, False, otherwise=otherwise)}

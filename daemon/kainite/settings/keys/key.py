"""One key of a settings file."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.settings.kinds.values import Kind


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the file.

    Attributes:
        name: the key as it is written.
        section, field: the field of :class:`~kainite.settings.Settings` that the key fills.
        kind: says what may be written.
        meaning: says in one sentence what the key does.
        aliases: other spellings; ``name`` wins where both are set.
        default: says in words where a missing value comes from, unless the field has a default.
        required: the file must set the key (or, for the stream, ``streamArn``).
    """

    name: str
    section: str
    field: str
    kind: Kind
    meaning: str
    aliases: tuple[str, ...] = ()
    default: str = ""
    required: bool = False

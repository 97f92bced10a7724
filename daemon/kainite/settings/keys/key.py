"""One key of a settings file."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.settings.kinds import Kind


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the file.

    Attributes:
        name: as it is written.
        section, field: which field of :class:`~kainite.settings.Settings` it fills.
        kind: what may be written.
        meaning: one sentence.
        aliases: other spellings; ``name`` wins where both stand.
        default: where a missing value comes from, in words, unless the field has a default.
        required: the file must set it (or, for the stream, ``streamArn``).
    """

    name: str
    section: str
    field: str
    kind: Kind
    meaning: str
    aliases: tuple[str, ...] = ()
    default: str = ""
    required: bool = False

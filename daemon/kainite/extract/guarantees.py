"""The guarantee of each kind of extraction, in words, as ``--check`` shows it. Pure."""

from __future__ import annotations

from kainite.settings import ExtractMode, ExtractOffsets, ExtractSettings

_KEEPER = {
    ExtractOffsets.KAINITE: "offsets kept by Kainite",
    ExtractOffsets.TIME: "ranges of time kept by Kainite",
}
_REPEATED = "messages with uow and ordinal are recognised when they come again, others are then there twice"


def guarantee(extract: ExtractSettings) -> str:
    """Returns one line, which says what is on the stream after crashes, and on what condition."""
    if extract.mode is ExtractMode.PLAIN:
        return f"plain: what a failed run wrote stays on the stream, and the next run may write it again; {_REPEATED}"
    if extract.offsets is ExtractOffsets.EXTRACTOR:
        return (
            "offsets kept by the extractor: at least once, if it stores its offset when the next request comes,"
            f" and not at EOP; {_REPEATED}"
        )
    return (
        f"{_KEEPER[extract.offsets]}: exactly once for messages with uow and ordinal, if the same request brings"
        f" the same answer; {_REPEATED}"
    )

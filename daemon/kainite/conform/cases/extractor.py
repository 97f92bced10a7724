"""The cases of extractors (docs/extract.md). Pure data."""

from __future__ import annotations

from typing import Final

from kainite.conform.cases.case import Case, EndOfInput, Extract, Withheld
from kainite.settings import ExtractMode, ExtractOffsets, ExtractSettings

ONE_CYCLE: Final = "one-cycle"
_NEEDS: Final = (ONE_CYCLE,)
_REQUESTS: Final = {
    ExtractOffsets.EXTRACTOR: b"",
    ExtractOffsets.KAINITE: b'{"start":null,"end":null}',
    ExtractOffsets.TIME: b'{"start":"2026-01-01T00:00:00.000000Z","end":"2026-01-01T01:00:00.000000Z"}',
}


def extractor_cases(extract: ExtractSettings) -> tuple[Case, ...]:
    """Returns all cases, in the order in which they are run."""
    if extract.mode is ExtractMode.PLAIN:
        return (Case("run", "one run: messages, then its end", (Extract(),)),)
    one = Extract(_REQUESTS[extract.offsets], extract.offsets is ExtractOffsets.KAINITE)
    return (
        Case(ONE_CYCLE, "one cycle: messages and EOP", (one,)),
        Case("reads-first", "each request read before it is answered", (one, one), held=Withheld.REQUESTS),
        Case("asked-again", "the same request again, to the same process", (one, one), _NEEDS),
        Case("end-of-input", "its input ends: it ends too", (one, EndOfInput()), _NEEDS),
    )

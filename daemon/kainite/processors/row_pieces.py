"""Joins the rows that ``kainite-extract-postgresql`` has split into pieces (``kainite.capture.row_pieces``).

The extractor puts a row's pieces before the change's own record, the main record, with the key of its shard. So nearly
always the record processor has seen all of them when the main record comes, and the latest pieces are remembered:

======================================  ===============================================================================
the pieces                              then
======================================  ===============================================================================
are remembered                          they are joined
are not: the process is a fresh one,    the stream is read again, a little back (:mod:`kainite.processors.pieces`)
the stream was resharded, or there
was no room
are not on the stream either            the change gives no delta, and standard error says so. The unit lacks a delta,
                                        so it cannot be applied, and fails as incomplete. An extractor that died between
                                        the main record and a piece puts all of them again: then the unit becomes whole
were another row's, by their checksum   the same
======================================  ===============================================================================

What is remembered is worth time alone. It is lost with the process, and nothing is wrong without it.
"""

from __future__ import annotations

import sys
import zlib
from collections import OrderedDict
from typing import Any, Final

from kainite.processors.pieces import Find, PiecesMissingError, SplitImage, joined

MOST_CHARACTERS: Final = 64 * 2**20
"""Most characters of pieces that are remembered: a row that the extractor gives has at most as many bytes."""
WAIT_S: Final = 60.0
"""Seconds behind the main record for which the stream is searched: its pieces come before it, but for one that was
refused, and PutRecords tries that again for 30 s."""


class RecentPieces:
    """The pieces that one record processor has seen lately.

    Args:
        elsewhere: finds what is not remembered.
        most: most characters that are remembered; the oldest rows are forgotten first.
    """

    def __init__(self, elsewhere: Find, most: int = MOST_CHARACTERS) -> None:
        self._elsewhere = elsewhere
        self._most = most
        self._size = 0
        self._rows: OrderedDict[str, dict[int, str]] = OrderedDict()

    def add(self, piece: dict[str, Any]) -> None:
        """Remembers a piece; of two copies the last one.

        Raises:
            KeyError: it is no piece.
        """
        name, index, data = piece["chunk_id"], piece["index"], piece["data"]
        row = self._rows.setdefault(name, {})
        self._size += len(data) - len(row.get(index, ""))
        row[index] = data
        while self._size > self._most and len(self._rows) > 1:
            self._forget(next(iter(self._rows)))

    def find(self, image: SplitImage) -> str:
        """Returns a row's text; forgets its pieces.

        Raises:
            PiecesMissingError: its pieces are not there.
            StreamError: the stream cannot be read.
        """
        pieces = self._rows.get(image.chunk_id, {})
        if not pieces.keys() >= set(range(image.total)):
            return self._elsewhere(image)
        text = joined(image, pieces)
        self._forget(image.chunk_id)
        return text

    def _forget(self, name: str) -> None:
        self._size -= sum(map(len, self._rows.pop(name).values()))


def split_row(named: dict[str, Any], arrived: float) -> SplitImage:
    """Returns what a main record says of its row.

    Args:
        named: the record's ``pieces``.
        arrived: when the record arrived in the stream, epoch seconds; its pieces came before.

    Raises:
        KeyError, TypeError, ValueError: it says something else.
    """
    made = int(named["made"]) / 1e9
    latest = max(made, arrived)
    return SplitImage(
        str(named["chunk_id"]), int(named["total"]), int(named["crc32"]), min(made, latest), latest, zlib.crc32
    )


def tell_missing(where: str, error: PiecesMissingError) -> None:
    """Says on standard error, which goes to the log, why a change gives no delta."""
    print(
        f"{where}: the change is left out, so its unit stays incomplete, and fails unless the extractor puts the"
        f" change again: {error}",
        file=sys.stderr,
        flush=True,
    )

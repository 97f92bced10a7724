"""Brings an extractor's records into a log and on into a target, in this process: record processor, log and apply job.

What the parts hand on to each other are the bytes that they would.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial

from kainite.processors.frame import DeltaProcessor
from kainite.processors.requests import DeliveredRecord
from kainite.processors.row_pieces import RecentPieces
from kainite.processors.searched_stream import no_stream
from kainite.uow.admission import Admission
from kainite.uow.signing import Signing
from kainite_processors.postgresql_changes import deltas_of
from support.apply_world import World


class CarriedRecords:
    """The way of records into a world's log; :meth:`World.apply` brings them into its target."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._output = io.BytesIO()
        self._processor = DeltaProcessor(partial(deltas_of, pieces=RecentPieces(no_stream)), self._output, lambda: 0.0)

    def log(self, records: Sequence[bytes]) -> None:
        """Brings records into the log."""
        if not records:
            return
        delivered = [DeliveredRecord(record, "k", str(place), 0, 0) for place, record in enumerate(records)]
        self._processor.process(delivered, None)  # its clock stands still: it asks for no checkpoint
        lines = self._output.getvalue().splitlines()
        self._output.seek(0)
        self._output.truncate()
        admission = Admission(Signing(self._world.catalogue))
        for line in lines:
            admission.feed(line)
        self._world.log.append(*admission.take("invalid"))

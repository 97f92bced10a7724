"""Decides which stream's shards a log collects.

Another stream may have shards of the same names, and its records, with lower sequence numbers, would be taken for
collected. So a log belongs to one stream, until a person makes it adopt another one (``kainite log adopt-stream``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogRequestError
from kainite.log.format.entry import LEASED, STREAM, ControlMeta, Entry, EntryKind, OperationMeta, StatusMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.requests import OK

FORGET_STREAM: Final = "forget-stream"
"""The action of a request ``{"action": "forget-stream", "stream": ID}`` (:mod:`kainite.operations.forgetting`)."""


def stream_entries(
    state: FoldedLog, stream: str, log: str, *, adopt: bool, note: OperationMeta | None = None
) -> Sequence[Entry]:
    """Returns the entries that make ``stream`` the log's stream; none if it is already.

    Args:
        state: the folded log.
        stream: the stream's identity; no other stream ever has the same.
        log: the log partition's name, for messages.
        adopt: whether the log takes the stream although it has positions of another one, and drops these positions.
        note: the record of the person who lets it adopt the stream, for the same batch.

    Raises:
        LogRequestError: the log has positions of another stream.
    """
    journal = Journal(state, epoch_ms())
    if state.stream not in (None, stream) and not adopt:
        raise LogRequestError(
            f"log partition {log} has collected the stream {state.stream}, and this is {stream}: choose another "
            "logPartition, or have the log forget the positions in the old stream with kainite log adopt-stream"
        )
    if adopt and state.stream is None:
        # The log never noted whose positions these are: noting the stream alone would make them this stream's
        # positions.
        journal.write(EntryKind.CONTROL, ControlMeta(STREAM, key=""))
    if state.stream != stream:
        journal.write(EntryKind.CONTROL, ControlMeta(STREAM, key=stream))
    if note is not None:
        journal.write(EntryKind.OPERATION, note)
    return journal.entries


def forget_stream(journal: Journal, request_id: str, request: Mapping[str, str]) -> Mapping[str, str]:
    """Writes the entries by which a stream is awaited no more; returns the answer. Whoever asks has it recorded."""
    state, stream = journal.state, request.get("stream", "")
    if request_id in state.answered:
        return {"result": OK, "message": "done before"}
    awaited = stream in state.awaited
    if awaited:
        journal.write(EntryKind.CONTROL, ControlMeta(LEASED, key=stream))
    journal.write(EntryKind.STATUS, StatusMeta(requests=(request_id,)))
    return {"result": OK, "message": "the log awaits it no more" if awaited else "the log did not await it"}

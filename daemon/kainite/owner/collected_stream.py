"""Decides which stream's shards a log collects.

Another stream may have shards of the same names, and its records, with lower sequence numbers, would be taken for
collected. So a log belongs to one stream, until a person makes it adopt another one (``kainite log adopt-stream``).
"""

from __future__ import annotations

from collections.abc import Sequence

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogRequestError
from kainite.log.format.entry import STREAM, ControlMeta, Entry, EntryKind, OperationMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal


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

"""Decides which stream's shards a log collects.

Another stream may have shards of the same names, and its records, with lower sequence numbers, would be taken for
collected. So a log is one stream's, until a person has it adopt another one (``kainite log adopt-stream``).
"""

from __future__ import annotations

from collections.abc import Sequence

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogRequestError
from kainite.log.format.entry import STREAM, ControlMeta, Entry, EntryKind
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal


def stream_entries(state: FoldedLog, stream: str, log: str, *, adopt: bool) -> Sequence[Entry]:
    """Returns the entries that make the log ``stream``'s; none where it is that already.

    Args:
        state: the folded log.
        stream: the stream's identity; no other stream ever has the same.
        log: which log partition it is, for messages.
        adopt: take it also where the log has positions of another stream, which are dropped.

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
        # Whose positions they are was never noted: noting the stream alone would make them the stream's own.
        journal.write(EntryKind.CONTROL, ControlMeta(STREAM, key=""))
    if state.stream != stream:
        journal.write(EntryKind.CONTROL, ControlMeta(STREAM, key=stream))
    return journal.entries

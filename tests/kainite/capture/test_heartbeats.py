"""Heartbeats are written when they are due; what the source says against them is told once for each reason."""

from __future__ import annotations

from kainite.base.errors import SourceError
from kainite.capture.heartbeats import Heartbeats


class ScriptedWriter:
    """Writes nowhere; answers each heartbeat with the next of its reasons, None for one that is written."""

    def __init__(self, *reasons: str | None) -> None:
        self._reasons = list(reasons)
        self.written = 0
        self.closed = False

    def write(self) -> None:
        if (reason := self._reasons.pop(0)) is not None:
            raise SourceError(reason)
        self.written += 1

    def close(self) -> None:
        self.closed = True


def test_a_heartbeat_is_written_when_it_is_due_and_not_before() -> None:
    now = [0.0]
    writer = ScriptedWriter(None, None)
    heartbeats = Heartbeats(writer, 10.0, lambda: now[0])
    for moment, written in ((0.0, 1), (9.9, 1), (10.0, 2), (19.9, 2)):
        now[0] = moment
        heartbeats.beat()
        assert writer.written == written
    heartbeats.close()
    assert writer.closed


def test_a_reason_is_told_once_until_a_heartbeat_was_written() -> None:
    told: list[str] = []
    writer = ScriptedWriter("no right", "no right", "a standby", None, "a standby")
    heartbeats = Heartbeats(writer, 0.0, complain=told.append)
    for _ in range(5):
        heartbeats.beat()
    about = "no heartbeat can be written into the source: "
    assert told == [f"{about}no right", f"{about}a standby", f"{about}a standby"]

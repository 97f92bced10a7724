"""The section for the children: how a record processor's process is started, waited for and ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kainite.settings.sections.markers import MarkersSettings


class ChildProtocol(StrEnum):
    """The dialect of the children: KCL's protocol of today, its first form, or markers."""

    JSON_LINES = "json-lines"
    JSON_LINES_V0 = "json-lines-v0"
    MARKERS = "markers"


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """The settings by which a child process is started, waited for and ended.

    Attributes:
        command: the words of the record processor's command line, which may hold secrets; not in ``repr``.
        reply_timeout: longest wait for a child's next message, seconds; None: no limit.
        shutdown_grace: time to answer ``shutdownRequested`` when the daemon ends, seconds.
        kill_after: time between closing a child's input, SIGTERM and SIGKILL, seconds.
        restart_backoff: wait before a failed child is started again, seconds; doubles with each failure in a row.
        restart_backoff_max: longest such wait, seconds.
        poison_tries: a batch that broke its child so often in a row is reported as poison.
        protocol: the dialect.
        warn_after: a call that takes longer is logged, seconds; None: no call is.
        markers: the settings of the ``markers`` dialect.
    """

    command: tuple[str, ...] = field(repr=False)
    reply_timeout: float | None = None
    shutdown_grace: float = 10.0
    kill_after: float = 5.0
    restart_backoff: float = 0.5
    restart_backoff_max: float = 30.0
    poison_tries: int = 5
    protocol: ChildProtocol = ChildProtocol.JSON_LINES
    warn_after: float | None = None
    markers: MarkersSettings = field(default_factory=MarkersSettings)

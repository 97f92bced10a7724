"""The section for the children: how a record processor's process is started, waited for and ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kainite.settings.key import Reload, kcl, kcl_key, own, section
from kainite.settings.kinds.values import choice, command_line, millis, seconds, text, whole
from kainite.settings.sections.markers import MarkersSettings


class ChildProtocol(StrEnum):
    """The dialect of the children: KCL's protocol of today, its first form, or markers."""

    JSON_LINES = "json-lines"
    JSON_LINES_V0 = "json-lines-v0"
    MARKERS = "markers"


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """The settings by which a child process is started, waited for and ended."""

    command: tuple[str, ...] = field(
        # Not in repr: the words of a command line may hold secrets.
        repr=False,
        metadata=kcl_key(
            "executableName",
            command_line(),
            Reload.NEXT_CHILD,
            "The record processor's command line.",
            required=True,
        ),
    )
    aws_profile: str | None = own(
        "childAwsProfile",
        text("a profile of AWS's configuration files, or none"),
        Reload.NEXT_CHILD,
        "The profile whose AWS credentials children find; `none`: children find no credentials.",
        default=None,
        otherwise="the daemon's credentials",
    )
    reply_timeout: float | None = kcl(
        "timeoutInSeconds",
        seconds(1),
        Reload.NEXT_CHILD,
        "Longest wait for a child's next message.",
        default=None,
        otherwise="no limit",
    )
    shutdown_grace: float = kcl(
        "shutdownGraceMillis",
        millis(0, 3_600_000),
        Reload.NEXT_CHILD,
        "Time that children have to answer shutdownRequested when the daemon ends (KCL's default is 0: none).",
        default=10.0,
    )
    kill_after: float = own(
        "childKillMillis",
        millis(0, 3_600_000),
        Reload.NEXT_CHILD,
        "Time between closing a child's input, TERM and KILL.",
        default=5.0,
    )
    restart_backoff: float = kcl(
        "taskBackoffTimeMillis",
        millis(0, 3_600_000),
        Reload.NEXT_CHILD,
        "Wait before a failed child is started again; doubles with each failure in a row.",
        default=0.5,
    )
    # The longest wait before a failed child is started again; `taskBackoffTimeMillis` where that is longer. A child
    # that fails for a reason that passes is back within half a minute, and one that cannot work costs little.
    restart_backoff_max: float = 30.0
    poison_tries: int = own(
        "poisonBatchTries",
        whole(1, 1_000_000),
        Reload.NEXT_CHILD,
        "A batch that broke its child so often in a row is reported as poison.",
        default=5,
    )
    protocol: ChildProtocol = own(
        "childProtocol",
        choice(ChildProtocol),
        Reload.NEXT_CHILD,
        "The protocol of the children: KCL's protocol of today, its first form, or markers.",
        default=ChildProtocol.JSON_LINES,
    )
    warn_after: float | None = kcl(
        "logWarningForTaskAfterMillis",
        millis(1, 86_400_000),
        Reload.NEXT_CHILD,
        "A call of a child that takes longer is logged.",
        default=None,
        otherwise="off",
    )
    markers: MarkersSettings = field(default_factory=MarkersSettings, metadata=section("The markers dialect"))

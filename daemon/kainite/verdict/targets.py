"""The check on whether settings files agree on the targets: a file, or a daemon, against the log's owner. Pure."""

from __future__ import annotations

from typing import Final

from kainite.observe.check import Check, Level

_REMEDY: Final = (
    "give all daemons and apply jobs the same target.* keys and start them again; kainite run -p {file} --check shows"
    " what a file has"
)


def differing_targets(owner: str, file: str = "FILE") -> Check:
    """Returns the check that fails.

    Args:
        owner: the worker id of the log's owner, or the last one.
        file: the settings file, for the remedy; ``FILE`` in ``/health``, which does not tell paths.
    """
    cause = f"worker {owner}, which owns the log, has other targets, or other tables of theirs, than this settings file"
    return Check("targets", Level.DEGRADED, cause, _REMEDY.format(file=file))

"""Who waits for a lock in the target, and which session holds it: asked when a person looks, never by the apply job.

Each kind of target that can be asked names its reader in :mod:`kainite.settings.kinds.target_kinds`. Texts of
statements are shown without their values: whoever may see that something waits may not see rows by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kainite.settings.kinds.target_kinds import kind_of

MOST_WORDS: Final = 120
"""The most characters of a statement that are shown."""

_VALUES: Final = re.compile(r"""'(?:[^'\\]|''|\\.)*'?|"(?=[^"]*$)|\$(\w*)\$.*?(?:\$\1\$|$)|\b\d[\w.]*""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A session that holds a lock for which another one waits.

    Attributes:
        pid: the server's number of it.
        who: its user, and what it calls itself, or where it comes from.
        state: what it does, such as ``idle in transaction``; None where the role may not see it.
        seconds: for how long its transaction has been open; None where that is not known.
        statement: the first words of its latest statement, without values; None where the role may not see it.
    """

    pid: int
    who: str
    state: str | None
    seconds: float | None
    statement: str | None


@dataclass(frozen=True, slots=True)
class LockWait:
    """A session of the apply job that waits for a lock.

    Attributes:
        pid: the server's number of it.
        seconds: for how long its statement has been running.
        statement: the first words of the statement, without values.
        holders: who blocks it; where several wait in a queue, those before it.
    """

    pid: int
    seconds: float
    statement: str
    holders: tuple[LockHolder, ...]


LockWaitReader = Callable[[str], tuple[LockWait, ...]]
"""Asks the target at an address; raises TargetUnavailableError, where it does not answer or refuses to."""


def read_lock_waits(target: str) -> tuple[LockWait, ...]:
    """Returns the sessions of the apply job that wait for locks now, the longest first.

    Args:
        target: the target's address, as the settings have it.

    Raises:
        SettingsError: this kind of target cannot be asked.
        MissingExtraError: its driver is not installed.
        TargetUnavailableError: it does not answer, or refuses to.
    """
    kind = kind_of(target)
    reader: LockWaitReader = kind.part(kind.lock_waits, kind.no_lock_waits)
    return tuple(sorted(reader(target), key=lambda wait: -wait.seconds))


def first_words(statement: str) -> str:
    """Returns the beginning of a statement without its values, on one line."""
    words = " ".join(_VALUES.sub("…", statement).split())
    return words if len(words) <= MOST_WORDS else words[: MOST_WORDS - 1] + "…"

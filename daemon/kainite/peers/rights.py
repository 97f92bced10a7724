"""What a user of the log's ports may do.

==================  ==================================================================================================
right               lets a user
==================  ==================================================================================================
``daemon``          join the owner and append for the shards whose leases it holds
``follow``          follow the log and announce outcomes: the apply job
``operate``         ask the owner, as commands do (``kainite log who``)
``application``     use every partition of applications
``application/N``   use partition N of applications
==================  ==================================================================================================

A user has the rights that its line in the file of users names (:mod:`kainite.peers.users`). Who proves that it has read
HEAD has those of the port whose owner HEAD names.
"""

from __future__ import annotations

from typing import Final

DAEMON: Final = "daemon"
FOLLOW: Final = "follow"
OPERATE: Final = "operate"
APPLICATION: Final = "application"

OF_THE_LOG: Final = frozenset({DAEMON, FOLLOW, OPERATE})
"""The rights on the port of logListen."""


def of_application(number: int) -> str:
    """Returns the right to use one partition of applications."""
    return f"{APPLICATION}/{number}"


def may_use(rights: frozenset[str], number: int) -> bool:
    """Returns whether the rights allow the use of a partition of applications."""
    return APPLICATION in rights or of_application(number) in rights


def is_right(text: str) -> bool:
    """Returns whether a text names a right."""
    kind, slash, number = text.partition("/")
    if slash:
        return kind == APPLICATION and number.isascii() and number.isdigit()
    return kind in OF_THE_LOG or kind == APPLICATION

"""A request of a person about one lease, which stands on the lease's own item, and what has become of it.

Two attributes of Kainite's own are on the items of KCL's lease table: ``kainiteRequest``, the latest request as JSON,
and ``kainiteMovedTo``, the worker that a person has moved the lease to. Java's workers write single attributes of an
item (``UpdateItem`` with ``attributeUpdates``) and read those that they know, so both outlive their writes. The holder
sees a request in the answer to each of its renewals and checkpoints; nobody needs a connection to it.

Each change of a request is one UpdateItem on the condition that the request still reads as it was read. None of them is
what a lease changes hands by: that is the counter alone, as always (:mod:`kainite.leases.table.lease_table`).

::

    asked ──(move: the target accepts)──► accepted ──(the holder begins)──► working ──► handed ──► done
      │ restart: the holder begins ────────────────────────────────────────► working ─────────────► done
      └─ refused, from each of them; withdrawn by who has asked, from asked and accepted

A request lives no longer than the acquisition of the lease that it found: who takes the lease and finds a request there
answers it, and carries nothing out. A newer request replaces an older one in any state.

=============================  ==================================  =====================================================
after                          the item shows                      a crash
=============================  ==================================  =====================================================
the request                    asked                               *asker*: it is carried out once; or refused, where
                                                                   the target of a move stays silent.
                                                                   *holder*: the lease expires; who takes it answers
the target's acceptance        accepted                            *target*: it is found out when it does not take the
                                                                   lease: the lease expires, any worker takes it
the holder's beginning         working                             *holder*: as above; the child has ended with it, and
                                                                   the next one begins at the checkpoint
the child's end                working                             the same
the hand-off: owner = target,  handed; ``kainiteMovedTo``          *holder*: the target takes the lease all the same.
counter + 1, in one write                                          *target*: the lease expires, any worker takes it
the target's take              handed, then done                   *target*: as any holder that dies
=============================  ==================================  =====================================================

A command that is repeated makes a new request: a restart restarts once more, a move to who holds the lease is refused.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

REQUEST: Final = "kainiteRequest"
MOVED_TO: Final = "kainiteMovedTo"

MOST_SAID: Final = 500
"""The most characters of what is said of a request."""


class RequestKind(StrEnum):
    """What is asked of a lease's holder."""

    RESTART = "restart"
    MOVE = "move"


class RequestState(StrEnum):
    """How far a request is (the module has the transitions)."""

    ASKED = "asked"
    ACCEPTED = "accepted"
    WORKING = "working"
    HANDED = "handed"
    DONE = "done"
    REFUSED = "refused"


class LeaseRequest(msgspec.Struct, frozen=True):
    """A request about one lease.

    Attributes:
        id: of the request; no other one has it.
        what: what is asked.
        by: who asks.
        to: the worker that is to have the lease; empty for a restart.
        state: how far it is.
        said: what has become of it, as a sentence; empty before it has ended.
        counter: the lease's counter after the hand-off, by which the target knows that nobody has held it since.
    """

    id: str
    what: RequestKind
    by: str
    to: str = ""
    state: RequestState = RequestState.ASKED
    said: str = ""
    counter: int | None = None

    @property
    def ended(self) -> bool:
        """Returns whether nothing follows any more."""
        return self.state in (RequestState.DONE, RequestState.REFUSED)

    def now(self, state: RequestState, said: str = "", counter: int | None = None) -> LeaseRequest:
        """Returns the request in another state."""
        return msgspec.structs.replace(self, state=state, said=said[:MOST_SAID], counter=counter)

    def as_text(self) -> str:
        """Returns the request as the item has it."""
        return msgspec.json.encode(self).decode()


def request_of(text: str | None) -> LeaseRequest | None:
    """Returns the request that an item has; None where there is none, or one that this release does not understand."""
    try:
        return None if text is None else msgspec.json.decode(text, type=LeaseRequest)
    except (msgspec.DecodeError, UnicodeError):
        return None

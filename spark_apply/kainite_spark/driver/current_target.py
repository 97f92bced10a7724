"""The target with its catalogue as it is now: read at the start, and again before a unit fails.

A unit that the target refuses, or whose statements cannot be made, may be sound, and the catalogue old: a column was
added, or made wider. So after the first refusal of a unit the job reads the catalogue again, and uses it for the second
try, which decides. The job also reads the catalogue when the log has a new scheme of signatures: the daemon has read
another catalogue then.

Reads begin at least :data:`READ_INTERVAL_S` apart; a caller waits for its turn. When the catalogue is another one, a
new target is opened with it, and tasks get that target with the next micro-batch. A target that is away, or busy, is
asked :data:`TRIES` times: a unit that fails for an old catalogue fails for good. A read that fails then changes
nothing, and is logged. A foreign key that acts and that has come is warned of: units that were collected without it may
have been applied under it already, in an order that it does not bear. Nothing of this is durable: another apply job
reads the catalogue at its start.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from kainite.base.errors import CatalogueError, MissingExtraError, TargetError
from kainite.base.logs import event
from kainite.base.retry import retry
from kainite.uow.catalogue.tables import Catalogue, ForeignKey
from kainite_spark.driver import patience
from kainite_spark.targets.contract import Target

_LOG = logging.getLogger(__name__)

READ_INTERVAL_S = 1.0
"""Least time, in seconds, between two reads of the catalogue."""

TRIES: Final = 8
"""Most tries of a read, which take 13 seconds: units that fit the old catalogue wait, too."""


class CurrentTarget:
    """Opens the target anew when its catalogue has changed.

    Args:
        load: reads the catalogue.
        open_anew: opens the target with a catalogue; the target was prepared before.
        catalogue: the catalogue that was read at the start.
        interval: the least seconds between two reads.
        clock: returns seconds that only go forward.
    """

    def __init__(
        self,
        load: Callable[[], Catalogue | None],
        open_anew: Callable[[Catalogue | None], Target],
        catalogue: Catalogue | None,
        *,
        interval: float = READ_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._open = open_anew
        self._catalogue = catalogue
        self._interval = interval
        self._clock = clock
        self._next = clock()
        self._retarget: Callable[[Target], None] = lambda _: None

    def tell(self, retarget: Callable[[Target], None]) -> None:
        """Calls ``retarget`` from now on with each target that is opened, before anything uses it."""
        self._retarget = retarget

    def read_again(self, stop: threading.Event) -> Target | None:
        """Reads the catalogue; returns the target with it, or None when it is the same, or cannot be read."""
        if stop.wait(max(0.0, self._next - self._clock())):
            return None
        self._next = self._clock() + self._interval
        try:
            target = retry(self._opened_anew, patience.BACKOFF, wait=stop.wait, tries=TRIES)
        except (CatalogueError, MissingExtraError, TargetError) as error:
            event(_LOG, logging.WARNING, "catalogue not read", error=error)
            return None
        if target is not None:
            event(_LOG, logging.INFO, "catalogue changed")
            self._retarget(target)
        return target

    def _opened_anew(self) -> Target | None:
        """Returns the target with the catalogue as it is; None where it is the same."""
        catalogue = self._load()
        if catalogue == self._catalogue:
            return None
        target = self._open(catalogue)
        before, self._catalogue = self._catalogue, catalogue
        for table, key in _acting_since(before, catalogue):
            event(
                _LOG, logging.WARNING, "foreign key that acts has come",
                table=table, columns=key.columns, parent=key.parent, help="kainite verify",
            )  # fmt: skip
        return target


def _acting_since(before: Catalogue | None, now: Catalogue | None) -> Iterator[tuple[str, ForeignKey]]:
    """Yields the foreign keys that act in one catalogue and not in the one before, of tables that both have."""
    if before is None or now is None:
        return
    for name in sorted(before.tables.keys() & now.tables.keys()):
        had = {_what_it_does(key) for key in before.tables[name].foreign_keys}
        yield from ((name, key) for key in now.tables[name].foreign_keys if key.acts and _what_it_does(key) not in had)


def _what_it_does(key: ForeignKey) -> ForeignKey:
    return replace(key, name="", deferrable=False)

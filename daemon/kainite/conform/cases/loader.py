"""The cases of loaders, in the markers dialect (docs/targets.md, *Requests and answers*). Pure data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from kainite.base.markers import Batching
from kainite.conform.cases.case import ONE_MESSAGE, Case, EndOfInput, Loading, Messages, Weight, Withheld
from kainite.conform.cases.read_back import loaded_rows, question
from kainite.conform.cases.samples import Samples

LOG: Final = "kainite-conform/0"
_NEEDS: Final = (ONE_MESSAGE,)
_RECORDS: Final = "records"


def loader_cases(batching: Batching, samples: Samples) -> tuple[Case, ...]:
    """Returns all cases, in the order in which they are run.

    Args:
        batching: how units are grouped.
        samples: the author's own requests; generic payloads are not sent to a loader.
    """
    prepare, (a, b, c, d, e) = _ask("prepare"), map(_Job, range(1, 6))
    cases = [
        Case(ONE_MESSAGE, "prepare: an answer and EOP", (prepare,)),
        Case("reads-first", "each request read before it is answered", (prepare, prepare), held=Withheld.REQUESTS),
        Case("take-over", "an apply job and a micro-batch begin", (prepare, *_Job(0).begin()), _NEEDS),
        Case("load", "a unit is loaded, and listed as applied",
             (prepare, *a.begin(), a.applied(), a.load(), a.applied(a.first), a.trim()), _NEEDS),
        Case("load-again", "a unit that is loaded comes again",
             (prepare, *b.begin(), b.load(), b.load(), b.applied(b.first), b.trim()), _NEEDS),
        Case("fence", "a job that was replaced loads nothing",
             (prepare, *c.begin(), c.replaced(), c.load(outranked=True)), _NEEDS),
        Case("read-back", "a loaded row comes back as it was, if the loader can be asked",
             (prepare, *e.begin(), e.load(), *e.rows(), e.trim()), _NEEDS, Weight.REFUSABLE),
        Case("end-of-input", "its input ends: it ends too", (prepare, EndOfInput()), _NEEDS),
    ]  # fmt: skip
    if batching is not Batching.SINGLE:
        cases.append(Case("batch", "a batch of two units", (prepare, *d.begin(), d.both(), d.trim()), _NEEDS))
    if samples.own:
        own = tuple(Messages((payload,), loading=Loading()) for payload in samples.payloads)
        cases.append(Case(_RECORDS, "requests of the author's own", own, _NEEDS))
        if asked := _asked_back(samples.payloads):
            cases.append(Case("own-rows", "the author's own rows come back as they were loaded, if it can be asked",
                              (prepare, *asked), (*_NEEDS, _RECORDS), Weight.REFUSABLE))  # fmt: skip
    return tuple(cases)


class _Job:
    """An apply job of one case. A loader may keep its account across the cases, so each case has numbers of its own."""

    def __init__(self, number: int) -> None:
        self.generation = 10 * number + 1
        self.first = 7_000 + 10 * number

    def begin(self) -> tuple[Messages, ...]:
        """Returns the begin of the job and of its first micro-batch."""
        generation = self.generation
        return (
            _ask("takeOver", generation=generation),
            _ask("beginMicroBatch", generation=generation, microBatch=1),
        )

    def load(self, *, outranked: bool = False) -> Messages:
        return Messages((self._unit(self.first),), loading=Loading(outranked=outranked))

    def both(self) -> Messages:
        """Returns two units in one batch."""
        return Messages((self._unit(self.first), self._unit(self.first + 1)), loading=Loading())

    def applied(self, *loaded: int) -> Messages:
        """Returns the question which of two units are applied, of which ``loaded`` are."""
        asked = Loading(frozenset(loaded), asked=True)
        return _ask("applied", asked, transactionIds=[self.first, self.first + 1])

    def rows(self) -> tuple[Messages, ...]:
        """Returns the question for the row that :meth:`load` loaded."""
        return _asked_back([self._unit(self.first)])

    def trim(self) -> Messages:
        return _ask("trim", generation=self.generation, microBatch=2, below=self.first + 2)

    def replaced(self) -> Messages:
        """Returns the begin of another job, which replaces this one."""
        return _ask("takeOver", generation=self.generation + 1)

    def _unit(self, tid: int) -> bytes:
        delta = {"table": "conform", "op": "insert", "key": {"id": tid}, "row": {"id": tid, "qty": 1}, "before": {}}
        place = {"generation": self.generation, "microBatch": 1, "transactionId": tid}
        return _request("load", {**place, "uow": f"conform-{tid}", "deltas": [delta]})


def _asked_back(requests: Sequence[bytes]) -> tuple[Messages, ...]:
    """Returns a question for each table whose rows the requests load."""
    rows = sorted(loaded_rows(requests), key=lambda row: row.table)
    tables = {table: tuple(found) for table, found in groupby(rows, lambda row: row.table)}
    return tuple(Messages((question(table, found),), loading=Loading(rows=found)) for table, found in tables.items())


def _ask(action: str, loading: Loading | None = None, **fields: Any) -> Messages:
    return Messages((_request(action, fields),), loading=loading or Loading())


def _request(action: str, fields: dict[str, Any]) -> bytes:
    place = {} if action == "prepare" else {"logPartition": LOG}
    return json.dumps({"action": action, **place, **fields}, separators=(",", ":")).encode()

"""Operations on units of work: what they would do, and how the log's owner is asked to do it.

Units that are named are a request each, in the order in which they are named; at most :data:`AT_ONCE` are without an
answer at any time, because the inbox keeps few answers. Units that a filter selects are one request, which the owner
carries out (:mod:`kainite.owner.bulk`). A caller that is killed leaves requests; the owner carries them out.

A failed unit is discarded by the owner. Any other unit is discarded by the apply job, unless the target has it already
(:mod:`kainite.owner.requests`); the owner is asked again until it does not know the unit any more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from kainite.log.contract import LogStore
from kainite.log.format.entry import OperationResult, UnitStatus
from kainite.log.state.chains import Chains
from kainite.log.state.loading import load_state
from kainite.log.state.outcomes import outcomes_of, stored_batches
from kainite.log.state.unit_state import UnitState
from kainite.log.views.unit_table import read_present_rows
from kainite.operations.inbox import Asker, LeftRequest, leave, take_answer
from kainite.operations.operation import DiscardUnits, OperationOutcome, Preview, RetryUnits, UnitOperation
from kainite.owner.requests import ASKED, OK

AT_ONCE: Final = 50
ASK_AGAIN_SECONDS: Final = 0.5
NAMED: Final = 10
"""How many units a preview names."""

Tell = Callable[[str, bool], None]
"""Takes a sentence about one unit, and whether it is bad news."""


def preview_units(store: LogStore, partition: str, operation: UnitOperation) -> Preview:
    """Returns what an operation on units would do now.

    Raises:
        LogCorruptError, LogUnavailableError: the log cannot be read.
    """
    units = _present(store, partition)
    failed = [unit for unit in units if unit.status is UnitStatus.FAILED]
    if operation.names:
        wanted = set(operation.names)
        chosen = [unit for unit in units if unit.uow in wanted or str(unit.tid) in wanted]
    else:
        chosen = [unit for unit in failed if operation.wanted.takes(unit)]
    count = len(operation.names) or len(chosen)
    chains = Chains((unit.tid, unit.status, unit.cause) for unit in units)
    behind = {tid for unit in chosen for tid in chains.behind(unit.tid)} - {unit.tid for unit in chosen}
    names = operation.names or tuple(unit.uow for unit in chosen)
    retry = isinstance(operation, RetryUnits)
    does = _retry_in_words(count, len(behind)) if retry else _discard_in_words(count, chosen, len(behind))
    if operation.target:
        does = f"{_units(count)} will {'be applied again' if retry else 'never be applied'} in {operation.target} alone"
    return Preview(does, count, names[:NAMED], len(failed), len(behind), asks=not retry)


def _present(store: LogStore, partition: str) -> list[UnitState]:
    """Returns the dispatched units that are not resolved, with the outcomes that the owner has not copied yet."""
    outcomes = stored_batches(store, partition)  # before the log, so that none is missed that is truncated meanwhile
    state = load_state(store, partition)
    latest = {outcome.tid: outcome for outcome in outcomes_of(outcomes, state.through + 1)}
    present = (unit.settled(latest[tid]) if tid in latest else unit for tid, unit in state.units.items())
    return [unit for unit in present if not unit.resolved]


def _retry_in_words(count: int, behind: int) -> str:
    more = f", and then the {_waiting(behind)} for {_them(count)}" if behind else ""
    return f"{_units(count)} will be applied again{more}"


def _discard_in_words(count: int, chosen: Sequence[UnitState], behind: int) -> str:
    deltas = sum(unit.count for unit in chosen)
    lacks = f": {deltas} change{'s' * (deltas != 1)} that the target will never have" if deltas else ""
    more = f". The {_waiting(behind)} for {_them(count)} go{'es' * (behind == 1)} on without" if behind else ""
    return f"{_units(count)} will never be applied to the target{lacks}{more}"


def _units(count: int) -> str:
    return f"{count} unit{'s' * (count != 1)}"


def _waiting(behind: int) -> str:
    return "one that waits" if behind == 1 else f"{behind} that wait"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def resolve_units(
    store: LogStore, partition: str, operation: UnitOperation, asker: Asker, timeout: float, tell: Tell
) -> OperationOutcome:
    """Has the log's owner resolve units; returns when each is decided on.

    Args:
        store, partition: the log.
        operation: which units, and what is done to them.
        asker: who asks, and why.
        timeout: seconds to wait for an answer.
        tell: is told what has become of each unit that was named.

    Raises:
        LogUnavailableError: no answer came in that time; the requests stay until they expire.
    """
    action = "retry" if isinstance(operation, RetryUnits) else "discard"
    if not operation.names:
        return _resolve_selected(store, partition, action, operation, asker, timeout)
    return _NamedUnits(store, partition, action, operation.target, asker, timeout, tell).resolve(operation.names)


def _resolve_selected(
    store: LogStore, partition: str, action: str, operation: UnitOperation, asker: Asker, timeout: float
) -> OperationOutcome:
    request = {"action": action, "filter": operation.wanted.as_text()}
    if isinstance(operation, DiscardUnits) and operation.expected is not None:
        request["expected"] = str(operation.expected)
    left = leave(store, partition, f"the {action} of units ({operation.wanted.in_words()})", request, asker)
    answer = take_answer(store, partition, left, 0, timeout)
    if answer["result"] != OK:
        return OperationOutcome(OperationResult.REFUSED, answer["message"], 0)
    count, refused = int(answer.get("count", "0")), int(answer.get("refused", "0"))
    return OperationOutcome(OperationResult.DONE, answer["message"], count, refused)


class _NamedUnits:
    """Units that are named, each with a request of its own."""

    def __init__(
        self, store: LogStore, partition: str, action: str, target: str, asker: Asker, timeout: float, tell: Tell
    ) -> None:
        self._store = store
        self._partition = partition
        self._action = action
        self._where = {"target": target} if target else {}
        self._asker = asker
        self._timeout = timeout
        self._tell = tell
        self._told: list[str] = []

    def resolve(self, names: Sequence[str]) -> OperationOutcome:
        left, asked, refused, open_ends = deque(names), deque[tuple[str, LeftRequest]](), 0, list[str]()
        while left or asked:
            while left and len(asked) < AT_ONCE:
                name = left.popleft()
                asked.append((name, self._leave({"action": self._action, "uow": name, **self._where})))
            name, request = asked.popleft()
            answer = take_answer(self._store, self._partition, request, len(asked) + len(left), self._timeout)
            if answer["result"] == ASKED:
                open_ends.append(name)
            refused += answer["result"] not in (OK, ASKED)
            self._say(answer["message"], bad=answer["result"] not in (OK, ASKED))
        undecided, too_late = self._await_discards(open_ends) if open_ends else (0, 0)
        result = OperationResult.DONE if refused + too_late < len(names) else OperationResult.REFUSED
        if undecided and not refused + too_late:
            result = OperationResult.ASKED
        done = len(names) - refused - too_late
        sentence = self._told[-1] if len(names) == 1 else f"{done} of {len(names)} units: {self._action}"
        return OperationOutcome(result, sentence, done, refused + too_late, tuple(self._told))

    def _await_discards(self, names: Sequence[str]) -> tuple[int, int]:
        """Waits until the apply job has decided on units, and says what became of them.

        Returns:
            How many are not decided on yet, and how many were applied.
        """
        deadline = time.monotonic() + self._timeout
        undecided = deque(names)
        while undecided and time.monotonic() < deadline:
            request = self._leave({"action": "discard", "uow": undecided[0], "again": "yes"})
            if take_answer(self._store, self._partition, request, 0, self._timeout)["result"] == ASKED:
                time.sleep(ASK_AGAIN_SECONDS)
            else:
                undecided.popleft()
        rows = read_present_rows(self._store, self._partition)
        found = {key: row.status for row in rows for key in (str(row.id), row.uow)}
        for name in names:
            if name in undecided:
                self._say(f"unit {name} is not decided on yet, since no apply job runs, or the target does not answer")
            elif found.get(name) == UnitStatus.COMMITTED:
                self._say(f"unit {name} was applied before it could be discarded", bad=True)
            else:
                self._say(f"unit {name} is discarded")
        return len(undecided), sum(found.get(name) == UnitStatus.COMMITTED for name in names)

    def _leave(self, request: dict[str, str]) -> LeftRequest:
        return leave(self._store, self._partition, f"unit {request['uow']}", request, self._asker)

    def _say(self, sentence: str, *, bad: bool = False) -> None:
        self._told.append(sentence)
        self._tell(sentence, bad)

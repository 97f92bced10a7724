"""Repairs of rows: each has its right place at the log's end, or is refused; whatever comes between."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
import pytest

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.journal import Journal
from kainite.owner.repairing import packed, read_since, repair
from kainite.settings import Isolation, UowOrder, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, Operation
from kainite.uow.signing import Signing
from support.main_log import MainLog
from support.outcomes_log import OutcomesLog
from support.tables import SHOP

DENSE = UowSettings(order=UowOrder.DENSE)
CODES = "abcdefghijklmnopqrst"
COMMITTED, FAILED = UnitStatus.COMMITTED, UnitStatus.FAILED


def country(code: str, name: str | None) -> Delta:
    """Returns the delta that sets a country's name, or deletes the country."""
    if name is None:
        return Delta("country", Operation.DELETE, {"code": code}, {}, {}, may_miss=True)
    return Delta("country", Operation.UPSERT, {"code": code}, {"code": code, "name": name}, {})


def customer(key: int, code: str) -> Delta:
    return Delta("customer", Operation.UPSERT, {"id": key}, {"id": key, "country": code}, {})


@dataclass
class Repaired:
    """A log with an apply job, to which a test sends repairs."""

    store: MemoryStore = field(default_factory=MemoryStore)
    requests: int = 0

    def __post_init__(self) -> None:
        self.log = MainLog(self.store, Signing(SHOP))
        self.job = OutcomesLog(self.store)

    def report(self, tid: int, status: UnitStatus) -> None:
        self.job.report(Outcome(tid, status, 0, "bad" if status is FAILED else None))
        self.log.take_outcomes()

    def request(self, since: int, *deltas: Delta, name: str = "repair-1-0/A") -> dict[str, str]:
        data = packed(orjson.dumps([delta.to_json() for delta in deltas]))
        return {"action": "repair", "name": name, "since": str(since), "rows": str(len(deltas)), "deltas": data,
                "by": "ann", "why": "drift"}  # fmt: skip

    def ask(self, request: Mapping[str, str]) -> Mapping[str, str]:
        asked = self.store.put_request("0", request)
        self.log.repair()
        answer = self.store.take_answer("0", asked)
        assert answer is not None
        return answer


@pytest.fixture
def log() -> Repaired:
    return Repaired()


def test_a_repair_is_a_unit_without_a_number_with_its_record(log: Repaired) -> None:
    since = log.log.unit("pg-1-0/B", country("x", "X"))
    answer = log.ask(log.request(since, country("a", "A"), customer(1, "a")))
    unit = log.log.state.units[int(answer["tid"])]
    assert (answer["result"], unit.uow, unit.number, unit.kind) == ("ok", "repair-1-0/A", None, "normal")
    assert log.log.state.next_number is None
    (noted,) = log.log.state.operations.all()
    assert (noted.what, noted.about, noted.who, noted.why, noted.result) == (
        "repair rows", "2 rows by unit repair-1-0/A", "ann", "drift", "done",
    )  # fmt: skip


@pytest.mark.parametrize("status", [UnitStatus.IN_PROGRESS, COMMITTED, UnitStatus.DISCARDED, FAILED])
@pytest.mark.parametrize("touch", [country("a", "newer"), country("a", None), customer(7, "a")], ids=str)
def test_what_a_unit_behind_the_point_touches_is_not_repaired(log: Repaired, status: UnitStatus, touch: Delta) -> None:
    since = log.log.unit("pg-1-0/B", country("x", "X"))
    tid = log.log.unit("pg-2-0/C", touch)
    if status is not UnitStatus.IN_PROGRESS:
        log.report(tid, status)
    deltas = [country("a", None)] if touch.table == "customer" else [country("a", "A")]
    answer = log.ask(log.request(since, *deltas))
    assert answer["result"] == "refused"
    assert answer["message"].startswith("unit pg-2-0/C, which is ")
    assert answer["met"]
    assert log.ask(log.request(since, country("b", "B")))["result"] == "ok"


def test_a_unit_before_the_point_that_goes_on_is_in_nobodys_way(log: Repaired) -> None:
    before = log.log.unit("pg-1-0/1", country("a", "older"))
    since = log.log.unit("pg-2-0/B", country("x", "X"))
    log.report(before, FAILED)
    answer = log.ask(log.request(since, country("a", "A")))
    assert (answer["result"], answer["message"]) == (
        "refused", "unit pg-1-0/1, which is failed, touches rows of it",
    )  # fmt: skip
    assert log.log.ask("retry", "pg-1-0/1") == "ok"
    assert log.ask(log.request(since, country("a", "A")))["result"] == "ok"


def test_a_unit_of_which_not_all_rows_are_known_is_in_the_way_of_every_repair(log: Repaired) -> None:
    since = log.log.unit("pg-1-0/B", country("x", "X"))
    log.log.malformed("pg-2-0/C", country("y", "Y"))
    answer = log.ask(log.request(since, country("a", "A")))
    assert (answer["result"], answer["met"]) == ("refused", "")


def test_a_request_is_carried_out_once(log: Repaired) -> None:
    since = log.log.unit("pg-1-0/B", country("x", "X"))
    request = log.request(since, country("a", "A"))
    assert log.ask(request)["result"] == "ok"
    assert "is used" in log.ask(request)["message"]  # a copy of it in the inbox
    state, seen = log.log.state, read_since(log.store, "0", request, 0, log.log.state.next_id)
    answered = next(iter(state.answered))
    journal = Journal(state, 0)
    assert repair(journal, answered, request, DENSE, Signing(SHOP), seen)["message"] == "done before"
    assert journal.entries == []


def test_what_the_log_has_no_more_is_no_point(log: Repaired) -> None:
    since = log.log.unit("pg-1-0/B", country("x", "X"))
    log.report(since, COMMITTED)
    assert "has no unit behind the point" in log.ask(log.request(since + 1000, country("a", "A")))["message"]
    assert "is no unit" in log.ask(log.request(since + 1, country("a", "A")))["message"]
    log.log.unit("pg-2-0/C", country("x", "X"))
    log.log.snapshot()
    assert "has no unit behind the point" in log.ask(log.request(since, country("a", "A")))["message"]
    assert "has no unit" in log.ask(log.request(since, country("a", "A")) | {"since": "x"})["message"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "T-1"}, "none of a repair"),
        ({"deltas": "?"}, "the deltas cannot be read"),
        ({"deltas": packed(b"[1]")}, "the deltas are a JSON array of objects"),
        ({"deltas": packed(b'[{"table":"nothing","op":"delete","key":{"id":1}}]')}, "nothing"),
    ],
)
def test_what_is_no_repair_is_refused(log: Repaired, change: dict[str, str], why: str) -> None:
    since = log.log.unit("pg-1-0/B", country("x", "X"))
    answer = log.ask(log.request(since, country("a", "A")) | change)
    assert (answer["result"], why in answer["message"], "met" in answer) == ("refused", True, False)


@pytest.mark.parametrize(
    "rules", [UowSettings(), UowSettings(order=UowOrder.DENSE, isolation=Isolation.RELAXED)], ids=str
)
def test_a_log_that_tells_no_point_takes_no_repair(log: Repaired, rules: UowSettings) -> None:
    since = log.log.unit("pg-1-0/B", country("x", "X"))
    journal = Journal(log.log.state, 0)
    request = log.request(since, country("a", "A"))
    seen = read_since(log.store, "0", request, 0, log.log.state.next_id)
    assert "needs uowOrder = dense" in repair(journal, "r", request, rules, Signing(SHOP), seen)["message"]
    assert "catalogue is not known" in repair(journal, "q", request, DENSE, None, seen)["message"]


@pytest.mark.parametrize("seed", range(40))
def test_after_any_history_a_repaired_row_is_as_the_source_had_it_there(seed: int) -> None:
    history = AnyHistory(random.Random(seed))
    for _ in range(150):
        history.step()
    assert history.accepted
    assert history.refused


class AnyHistory:
    """A source, its log and repairs in any order: read at some point, asked for at any later time, perhaps twice."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.log = Repaired()
        self.source: list[dict[str, str | None]] = [{}]  # after each transaction
        self.changes: list[dict[str, str | None]] = []
        self.tids: list[int] = []  # of the transactions that are in the log
        self.read: list[tuple[int, dict[str, str | None]]] = []  # as of so many transactions
        self.left: list[tuple[Mapping[str, str], dict[str, str | None]]] = []
        self.accepted: list[str] = []
        self.refused = 0

    def step(self) -> None:
        self.dice.choice((self.commit, self.dispatch, self.dispatch, self.apply, self.see, self.see, self.ask))()

    def commit(self) -> None:
        number = len(self.changes)
        change = {code: self.dice.choice((f"{code}{number}", None)) for code in self.dice.sample(CODES, 2)}
        self.changes.append(change)
        self.source.append(self.source[-1] | change)

    def dispatch(self) -> None:
        number = len(self.tids)
        if number < len(self.changes):
            deltas = [country(*one) for one in self.changes[number].items()]
            self.tids.append(self.log.log.unit(f"pg-{number}-0/{number + 1:X}", *deltas))

    def apply(self) -> None:
        """Resolves the first units, as an apply job that keeps their order; then they leave the owner's memory."""
        for tid in list(self.log.log.state.units)[: self.dice.randint(1, 4)]:
            self.log.report(tid, COMMITTED)
        if self.dice.random() < 0.05:
            self.log.log.snapshot()

    def see(self) -> None:
        rows = {code: self.source[-1].get(code) for code in self.dice.sample(CODES, 2)}
        self.read.append((len(self.changes), rows))

    def ask(self) -> None:
        """Asks for a repair whose point is in the log, or again for one that was asked for before."""
        if ready := [one for one in self.read[-4:] if one[0] < len(self.tids)]:
            point, rows = self.dice.choice(ready)
            deltas = [country(*one) for one in rows.items()]
            name = f"repair-{len(self.left)}-0/{point:X}"
            self.left.append((self.log.request(self.tids[point], *deltas, name=name), rows))
        if not self.left:
            return
        request, rows = self.left[-1] if self.dice.random() < 0.8 else self.dice.choice(self.left)
        if self.log.ask(request)["result"] != "ok":
            self.refused += 1
            return
        assert request["name"] not in self.accepted
        self.accepted.append(request["name"])
        there = self.source[len(self.tids)]
        assert rows == {code: there.get(code) for code in rows}

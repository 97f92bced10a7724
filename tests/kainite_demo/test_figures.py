"""The display's and the summary's texts, from a log and from numbers."""

from __future__ import annotations

import io

import orjson
from rich.console import Console

from kainite.base.position import Position
from kainite.log.format.entry import (
    Batch,
    Entry,
    EntryKind,
    FragmentMeta,
    Outcome,
    PositionMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.store.memory import MemoryStore
from kainite_demo.log_watch import LogWatch
from kainite_demo.progress import Display, Figures
from kainite_demo.summary import Summary


def fragment(uow: str, count: int, *, end: int | None = None, number: int | None = None) -> Entry:
    return Entry(EntryKind.FRAGMENT, FragmentMeta(uow, "s", count, end_count=end, number=number))


def unit(uow: str, count: int, number: int, *fragments: int, conflict: int | None = None) -> Entry:
    return Entry(EntryKind.UNIT, UnitMeta(uow, count, fragments=fragments, number=number, conflict=conflict))


def outcomes(*found: Outcome) -> Entry:
    return Entry(EntryKind.STATUS, StatusMeta(found))


def put(store: MemoryStore, first_id: int, *entries: Entry) -> int:
    store.put_batch("0", Batch(first_id, 1, 0, entries), f"nonce {first_id}")
    return first_id + len(entries)


def test_the_log_tells_how_far_each_unit_is() -> None:
    store = MemoryStore()
    watch = LogWatch(store, "0")
    assert watch.poll().records == 0
    position = Entry(EntryKind.POSITION, PositionMeta("s", Position(1)))
    end = put(store, 0, fragment("b", 2), position, fragment("b", 1, end=3, number=2), fragment("a", 1))
    counts = watch.poll()
    assert (counts.deltas, counts.collected, counts.dispatched, counts.records) == (4, 1, 0, 5)
    end = put(store, end, unit("a", 2, 1, 3), unit("b", 3, 2, 0, 2, conflict=4))
    counts = watch.poll()
    assert (counts.deltas, counts.collected, counts.dispatched, counts.records) == (5, 2, 2, 7)
    assert (counts.conflicts, counts.committed, counts.failed) == (1, 0, {})
    put(store, end, outcomes(Outcome(4, UnitStatus.COMMITTED, 1), Outcome(5, UnitStatus.FAILED, 0, "no such row")))
    counts = watch.poll()
    assert (counts.committed, counts.instances, counts.failed) == (1, {0, 1}, {5: "no such row"})


def test_a_unit_that_was_malformed_counts_as_failed() -> None:
    store = MemoryStore()
    put(store, 0, Entry(EntryKind.UNIT, UnitMeta("a", 0, number=1, cause="invalid JSON")))
    assert LogWatch(store, "0").poll().failed == {0: "invalid JSON"}


FIGURES = Figures(
    seconds=12,
    captured=1200,
    records=5000,
    collected=1000,
    dispatched=999,
    applied=900,
    behind=1.26,
    snapshots=40,
    kills=0,
)


def test_plain_lines_show_every_stage_and_do_not_flood() -> None:
    out = io.StringIO()
    display = Display(Console(file=out, width=200))
    with display.figures():
        for _ in range(100):
            display.show(FIGURES)
    (line,) = out.getvalue().splitlines()
    stages = ["captured 1,200", "records 5,000", "collected 1,000", "dispatched 999", "applied 900"]
    assert all(stage in line for stage in [*stages, "lag 300 (1.3 s)", "snapshots 40"])


def test_a_terminal_gets_a_table_and_is_left_clean() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    display = Display(console)
    with display.figures():
        display.show(FIGURES)
        display.say("killing the daemon")
    assert "1,200" in out.getvalue()
    assert "killing the daemon" in out.getvalue()
    assert out.getvalue().rstrip().endswith(("\x1b[?25h", "\x1b[2K"))


def test_the_summary_is_the_same_for_people_and_programs() -> None:
    summary = Summary(
        transactions=3000,
        records=15000,
        rows_compared=2_003_220,
        units_per_second=97.6,
        latency_p50=1.254,
        latency_p99=None,
        latency_units=2990,
        conflicts=17,
        job_instances=2,
        snapshots_checked=500,
        kills={"daemon": 2, "apply job": 1},
        seconds=61.2,
    )
    out = io.StringIO()
    Console(file=out, width=120).print(summary.as_text())
    said = ["equal, row by row", "3,000", "15,000", "2,003,220", "98", "1.25 s / –", "17", "3  kills survived", "61 s"]
    assert [figure for figure in said if figure not in out.getvalue()] == []
    assert "daemon 2, apply job 1" in out.getvalue()
    assert orjson.loads(orjson.dumps(summary.as_json()))["kills"] == {"daemon": 2, "apply job": 1}

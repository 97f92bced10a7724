"""Several members of one log, with real sockets: whoever owns it, each append is in the log once."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from kainite.base.address import Address
from kainite.base.clock import boot_seconds
from kainite.base.errors import KainiteError, LogRequestError
from kainite.base.position import Position
from kainite.log.client import LogClient, ReadingReport
from kainite.log.collecting.waiting import NEAR_S
from kainite.log.contract import LogStore
from kainite.log.state.loading import load_state
from kainite.owner.mount import mount
from kainite.owner.reading_turn import SLACK_MS
from kainite.peers import network
from kainite.peers.access import Access
from kainite.peers.address import OwnerAddress, from_text
from kainite.peers.connection.frames import HEADER_SIZE, PEERS_HELLO, WALTZ_HELLO
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.connection.introduction import said_in
from kainite.peers.sharing import member_session as session_module
from kainite.peers.sharing.shared_log import SharedLog
from kainite.settings import UowEnd, UowSettings
from kainite.settings.assignment import TableAssignment
from kainite.store.memory import MemoryStore
from kainite.worker.log_checks import checks_of
from support.doors import USERS, holding
from support.dynamodb_doubles import on_each_store
from support.log_builders import fragment
from support.log_members import LIMIT, SETTINGS, P, members, units_of
from support.next_append import append_next
from support.waiting import until


def at(sequence: int) -> Position:
    return Position(sequence)


def told(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(str(getattr(record, "kainite_fields", "")) for record in caplog.records)


async def test_one_owns_and_the_others_append_through_it() -> None:
    async with members() as all_:
        a, b, c = await all_.join("a"), await all_.join("b"), await all_.join("c")
        assert [log.owner is not None for log in (a, b, c)] == [True, False, False]
        await append_next(a, "s0", at(1), at(5), [fragment("T-1", [1], count=1)])
        await append_next(b, "s1", at(1), at(5), [fragment("T-2", [1, 2])])
        await append_next(c, "s2", at(1), at(5), [fragment("T-2", [3], count=3)])
        assert units_of(all_.store) == ["T-1", "T-2"]
        assert await c.position("s1") == await a.position("s1") == at(5)
        assert await b.position("s9") is None


async def test_an_append_that_is_made_again_is_recognised_and_one_that_overlaps_is_refused() -> None:
    async with members() as all_:
        await all_.join("a")
        b = await all_.join("b")
        for _ in range(2):
            await append_next(b, "s0", at(1), at(5), [fragment("T", [1], count=1)])
        with pytest.raises(LogRequestError, match="overlap what the log has"):
            await append_next(b, "s0", at(5), at(6), [fragment("T-2", [1], count=1)])
        assert units_of(all_.store) == ["T"]


@on_each_store
@pytest.mark.timeout(300)
async def test_on_each_store_appends_are_made_through_owners_that_change(store: LogStore) -> None:
    async with members(store) as all_:
        await all_.join("a")
        b = await all_.join("b")
        await append_next(b, "s1", at(1), at(5), [fragment("T-1", [1], count=1)])
        await all_.kill("a")
        await append_next(b, "s1", at(6), at(7), [fragment("T-2", [1], count=1)])
        c = await all_.join("c")
        await all_.leave("b")
        for _ in range(2):
            await append_next(c, "s1", at(6), at(7), [fragment("T-2", [1], count=1)])
        await append_next(c, "s1", at(8), at(9), [fragment("T-3", [1], count=1)])
        assert await c.position("s1") == at(9)
    assert units_of(store) == ["T-1", "T-2", "T-3"]


async def test_after_a_clean_stop_another_one_owns_the_log_at_once() -> None:
    async with members() as all_:
        await all_.join("a")
        b, c = await all_.join("b"), await all_.join("c")
        await append_next(b, "s0", at(1), at(5), [fragment("T-1", [1], count=1)])
        await all_.leave("a")
        await asyncio.wait_for(append_next(b, "s0", at(6), at(7), [fragment("T-2", [2], count=1)]), LIMIT)
        await asyncio.wait_for(append_next(c, "s1", at(6), at(7), [fragment("T-3", [3], count=1)]), LIMIT)
        assert sorted(units_of(all_.store)) == ["T-1", "T-2", "T-3"]
        assert (b.owner is None) != (c.owner is None)


async def test_a_killed_owner_is_replaced_at_once_because_its_port_refuses() -> None:
    async with members() as all_:
        await all_.join("a")
        b = await all_.join("b")
        await all_.kill("a")
        await asyncio.wait_for(b.append("s0", at(1), at(2), [fragment("T", [1], count=1)]), LIMIT)
        assert b.owner is not None
        assert b.owner.generation == 2


async def test_a_member_with_other_targets_says_so_and_leaves_the_log_to_one_that_agrees(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mine, theirs = TableAssignment((("a", ()), ("b", ("t",)))), TableAssignment((("a", ()), ("b", ("u",))))
    async with members(targets=mine) as all_:
        a, other, c = await all_.join("a"), await all_.join("b", targets=theirs), await all_.join("c")
        await until(lambda: other.other_targets() == "a")
        assert (a.other_targets(), c.other_targets()) == ("", "")
        assert [check.name for check in checks_of(other, 600.0)] == ["targets"]
        await all_.kill("a")
        await until(lambda: c.owner is not None)
        with caplog.at_level(logging.INFO):
            await all_.kill("c")
            await until(lambda: other.owner is not None)  # nobody else is there
        assert other.other_targets() == ""
    assert "targets changed" in [record.getMessage() for record in caplog.records]
    assert load_state(all_.store, P).targets.assignment == theirs


async def test_a_fenced_owner_becomes_a_follower() -> None:
    async with members() as all_:
        a = await all_.join("a")
        b = await all_.join("b")
        head = all_.store.read_head(P)
        assert head is not None
        # Somebody takes the log over, and leaves it: whichever of the two is then faster owns it.
        mount(all_.store, P, "usurper", 1.0, gone=head.generation).release()
        await asyncio.wait_for(a.append("s0", at(1), at(2), [fragment("T-1", [1], count=1)]), LIMIT)
        await asyncio.wait_for(b.append("s1", at(1), at(2), [fragment("T-2", [1], count=1)]), LIMIT)
        assert sorted(units_of(all_.store)) == ["T-1", "T-2"]


async def test_the_log_is_handed_over_when_a_person_asks_and_nothing_is_lost() -> None:
    async with members() as all_:
        a, b = await all_.join("a"), await all_.join("b")
        await append_next(a, "s0", at(1), at(2), [fragment("T-1", [1], count=1)])
        all_.store.put_request(P, {"action": "hand-over", "by": "me"})
        await until(lambda: b.owner is not None)
        assert a.owner is None
        await asyncio.wait_for(append_next(a, "s0", at(3), at(4), [fragment("T-2", [1], count=1)]), LIMIT)
        await asyncio.wait_for(append_next(b, "s1", at(1), at(2), [fragment("T-3", [1], count=1)]), LIMIT)
        assert units_of(all_.store) == ["T-1", "T-2", "T-3"]


async def test_the_log_comes_back_where_nobody_else_is_there_to_own_it() -> None:
    async with members() as all_:
        a = await all_.join("a")
        all_.store.put_request(P, {"action": "hand-over", "by": "me"})
        await until(lambda: a.owner is not None and a.owner.generation == 2)
        await asyncio.wait_for(append_next(a, "s0", at(1), at(2), [fragment("T-1", [1], count=1)]), LIMIT)


async def test_an_owner_that_is_silent_for_its_lease_is_replaced() -> None:
    async with members(lease=0.5) as all_:
        await all_.join("a", heartbeat=1000.0)
        b = await all_.join("b")
        await until(lambda: b.owner is not None)


async def test_an_owner_without_an_address_is_waited_for() -> None:
    store = MemoryStore()
    held = mount(store, P, "without a port", 1000.0)
    async with members(store) as all_:
        a = await all_.join("a", reached=False)
        assert not a.is_reached
        await asyncio.to_thread(held.release)
        await asyncio.wait_for(a.reached(), LIMIT)
        assert a.owner is not None


async def test_a_loopback_address_of_another_host_is_no_evidence(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    mount(store, P, "elsewhere", 1000.0, address="127.0.0.1:9@another host")
    async with members(store) as all_:
        a = await all_.join("a", reached=False)
        await until(lambda: "listens on 127.0.0.1:9 of its own host alone" in told(caplog))
        assert not a.is_reached


@pytest.mark.parametrize(
    ("worker", "stream", "cause"),
    [
        ("a", "s", "another daemon runs under the worker id a"),
        ("b", "s", "another daemon runs under the worker id b"),
        ("c", "other", "log t/0 collects stream s; worker c has log t/0 and stream other"),
    ],
)
async def test_who_cannot_append_here_is_told_why(
    worker: str, stream: str, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    async with members(store) as all_, members(store) as others:
        await all_.join("a")
        await all_.join("b")
        log = await others.join(worker, stream=stream, reached=False)
        await until(lambda: cause in told(caplog))
        assert not log.is_reached


@pytest.mark.parametrize(
    ("owner", "member"), [(None, "stream 1"), ("stream 1", None), ("stream 1", "stream 1"), (None, None)]
)
async def test_who_does_not_know_the_streams_identity_shares_the_log_all_the_same(
    owner: str | None, member: str | None
) -> None:
    """Leaves out what ``kainite log serve`` and a daemon without DescribeStreamSummary do not know."""
    async with members() as all_:
        await all_.join("a", identity=owner)
        b = await all_.join("b", identity=member)
        await append_next(b, "s0", at(1), at(5), [fragment("T", [1], count=1)])
        assert units_of(all_.store) == ["T"]


@pytest.mark.parametrize("owner", [None, "stream 1"])
async def test_a_member_of_a_stream_that_replaced_the_logs_own_is_refused_also_by_an_owner_that_knows_none(
    owner: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with members() as all_:
        a = await all_.join("a", identity=owner)
        b = await all_.join("b", identity="stream 1")
        await append_next(b, "s0", at(1), at(5), [fragment("T", [1], count=1)])
        c = await all_.join("c", identity="stream 2", reached=False)
        await until(lambda: "has collected the stream stream 1, and this is stream 2" in told(caplog))
        assert not c.is_reached
        assert list(a.reception.members) == ["b"]
        await all_.kill("a")
        await all_.kill("b")
        await all_.leave("c")
        d = await all_.join("d")
        e = await all_.join("e", identity="stream 2", reached=False)
        caplog.clear()
        await until(lambda: "has collected the stream stream 1, and this is stream 2" in told(caplog))
        assert (d.is_reached, e.is_reached) == (True, False)


class Flickering(SharedLog):
    """A log that the test puts behind the facade, and takes away."""

    def show(self, log: LogClient) -> None:
        self.present_log.put(log)

    def hide(self, log: LogClient) -> None:
        self.present_log.drop(log)


async def test_a_log_that_is_gone_before_the_request_has_its_turn_is_waited_for_again() -> None:
    async with members() as all_:
        behind = await all_.join("a")
        log = Flickering(all_.store, SETTINGS, UowSettings(), "s", all_.holders)
        asking = asyncio.create_task(log.position("s0"))
        await asyncio.sleep(0)
        log.show(behind)
        log.hide(behind)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not asking.done()
        log.show(behind)
        assert await asyncio.wait_for(asking, LIMIT) is None


async def test_a_member_that_restarts_under_its_worker_id_is_taken_again() -> None:
    async with members() as all_:
        await all_.join("a")
        await all_.join("b")
        await all_.kill("b")
        b = await all_.join("b")
        await append_next(b, "s0", at(1), at(2), [fragment("T", [1], count=1)])


class Reports:
    """An owner's view of what is read, with a clock that the test sets."""

    def __init__(self, log: SharedLog, monkeypatch: pytest.MonkeyPatch) -> None:
        assert log.owner is not None
        self.seen: list[ReadingReport] = []
        monkeypatch.setattr(log.owner, "report", self.seen.append)

    def latest(self, shard: str) -> float | None:
        ages = [report.read[shard] for report in self.seen if shard in report.read]
        return ages[-1] if ages else None


async def test_the_owner_asks_how_far_shards_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ASK_EVERY_S", 0.02)
    async with members() as all_:
        a, b = await all_.join("a"), await all_.join("b")
        reports = Reports(a, monkeypatch)
        b.report(ReadingReport(frozenset({"s0", "s1"}), {"s0": 7.0}))
        await until(lambda: reports.latest("s0") is not None)
        assert reports.seen[-1].shards == {"s0", "s1"}
        first = reports.latest("s0")
        assert first is not None
        assert first >= 7.0
        await until(lambda: (reports.latest("s0") or 0.0) > first + 0.1)  # it grows until there is news


async def test_the_owner_asks_at_once_where_a_unit_waits_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ASK_EVERY_S", 3600.0)
    noon = 1_700_000_000_000
    async with members(uow=UowSettings(end=UowEnd.WATERMARK, grace=0.0)) as all_:
        a, b = await all_.join("a"), await all_.join("b")
        again = list[str]()
        for name, log in (("a", a), ("b", b)):
            log.latest_reading.read_again = partial(again.append, name)
        b.reading = lambda: ReadingReport(frozenset({"s0", "s1"}), {}, {"s1": 0.0}, {"s1": noon})
        a.reading = lambda: ReadingReport(frozenset({"s0", "s1"}), {}, {"s0": 0.0}, {"s0": noon})
        one = replace(fragment("T", [1]), time=noon * 1_000_000, arrived_ms=noon)
        assert await b.begin(noon - 70_000) == noon - 70_000
        assert await b.begin(noon) == await a.begin(noon) == noon - 70_000, "the log has one beginning"
        await append_next(b, "s1", at(1), at(1), [one])
        assert a.owner is not None
        owner = a.owner
        await until(lambda: owner.state.find("T") is not None)
        assert owner.state.started_ms == noon - 70_000
        assert owner.state.find("T").fault is None  # type: ignore[union-attr]
        assert set(again) == {"a", "b"}, "readers that do not know whether they have read all read again"


async def test_the_time_that_a_report_was_under_way_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ASK_EVERY_S", 0.02)
    async with members() as all_:
        a, b = await all_.join("a"), await all_.join("b")
        reports = Reports(a, monkeypatch)
        b.report(ReadingReport(frozenset({"s0"}), {"s0": 7.0}))
        (session,) = a.reception._sessions.values()  # noqa: SLF001 - its clock is set
        later = iter([0.0, 3600.0, *([7200.0] * 100_000)])  # an hour passes between a question and its answer
        monkeypatch.setattr(session, "_clock", lambda: boot_seconds() + next(later))
        await until(lambda: any(report.read["s0"] >= 3607.0 for report in reports.seen))


async def test_a_report_that_is_too_old_is_told_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ASK_EVERY_S", 0.02)
    async with members() as all_:
        a, b = await all_.join("a"), await all_.join("b")
        reports = Reports(a, monkeypatch)
        b.report(ReadingReport(frozenset({"s0"}), {"s0": 7.0}))
        await until(lambda: reports.seen != [])
        asked: list[None] = []
        monkeypatch.setattr(a.owner, "backlog", lambda: asked.append(None))
        monkeypatch.setattr(b.latest_reading, "clock", lambda: boot_seconds() + NEAR_S + 1.0)
        await until(lambda: len(asked) > 3)
        reports.seen.clear()
        await until(lambda: len(asked) > 6)
        assert reports.seen == []


async def test_a_backlog_reaches_the_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ASK_EVERY_S", 0.02)
    async with members(backlog_units=1) as all_:
        a, b = await all_.join("a"), await all_.join("b")
        assert (a.backlog(), b.backlog()) == ("", "")
        await append_next(b, "s0", at(1), at(1), [fragment("T-1", [1], count=1)])
        await until(lambda: "1 unit of about" in b.backlog())
        waiting = asyncio.create_task(b.append("s0", at(2), at(2), [fragment("T-2", [1], count=1)], at(1)))
        await until(lambda: "1 unit of about" in a.backlog())
        assert not waiting.done()
        waiting.cancel()


async def test_how_far_shards_are_read_while_too_many_units_are_collected_reaches_the_followers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_module, "ASK_EVERY_S", 0.02)
    async with members(backlog_units=2) as all_:
        a, b = await all_.join("a"), await all_.join("b")
        report = ReadingReport(frozenset({"s0", "s1", "child"}), {}, arrived={"s0": 70_000, "s1": 90_000},
                               waiting=frozenset({"child"}))  # fmt: skip
        b.reading = lambda: report
        await append_next(b, "s0", at(1), at(1), [fragment("T-1", [1])])
        assert (a.hold_ms, b.hold_ms) == (None, None)
        await append_next(b, "s0", at(2), at(2), [fragment("T-2", [1])])
        await until(lambda: b.hold_ms == a.hold_ms == 70_000 - 1 + SLACK_MS)
        assert "2 units of about 0 MiB are being collected" in b.backlog()
        await append_next(b, "s1", at(1), at(1), [fragment("T-1", [2], count=2)])
        await until(lambda: (a.hold_ms, b.hold_ms) == (None, None))


async def test_a_large_append_passes_whole() -> None:
    async with members() as all_:
        await all_.join("a")
        b = await all_.join("b")
        keys = range(10_000)
        await append_next(b, "s0", at(1), at(2), [fragment("T", keys, count=len(keys))])
        state = load_state(all_.store, P)
        (unit,) = state.units.values()
        assert unit.count == len(keys)


async def raw(address: OwnerAddress, data: bytes) -> bytes:
    """Sends bytes to a member's port; returns what comes back until it closes the connection."""
    reader, writer = await network.connect(address)
    writer.write(data)
    writer.write_eof()
    with suppress(OSError):
        received = await asyncio.wait_for(reader.read(), LIMIT)
        await network.hang_up(writer)
        return received
    return b""


def address_of(store: LogStore) -> OwnerAddress:
    head = store.read_head(P)
    assert head is not None
    address = from_text(head.address)
    assert address is not None
    return address


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"H", b"\xff" * 100_000])
async def test_whoever_speaks_something_else_is_cut_off_and_disturbs_nobody(data: bytes) -> None:
    async with members() as all_:
        await all_.join("a")
        b = await all_.join("b")
        await raw(address_of(all_.store), data)
        await append_next(b, "s0", at(1), at(2), [fragment("T", [1], count=1)])


async def test_a_program_that_comes_to_the_daemons_port_is_told_where_to_connect() -> None:
    async with members() as all_:
        await all_.join("a")
        reader, writer = await network.connect(address_of(all_.store))
        writer.write(encode_hello(WALTZ_HELLO, Hello((0, 1, 2, 3, 4), "a program")))
        hellos = []
        async with asyncio.timeout(LIMIT):
            for _ in range(2):
                header = await reader.readexactly(HEADER_SIZE)
                hellos.append((header[0], decode_hello(await reader.readexactly(int.from_bytes(header[3:])))))
            assert await reader.read() == b"", "the connection is closed"
        await network.hang_up(writer)
        assert (hellos[0][0], hellos[0][1].versions, said_in(hellos[0][1]).name) == (PEERS_HELLO, (1,), "Kainite log")
        magic, refusal = hellos[1]
        assert (magic, refusal.versions) == (WALTZ_HELLO, ())
        assert "programs connect to the port of logApplicationsListen" in (refusal.message or "")


class Shards:
    """Consumers of shards, one append at a time each, which may be given up and taken over by another member."""

    def __init__(self, units: int) -> None:
        self._units = units
        self.done = 0

    async def consume(self, shard: str, log: Callable[[], SharedLog], rng: Random) -> None:
        """Collects all records of a shard, in batches of other sizes each time; what is refused is read again."""
        reached = 0
        while reached < self._units:
            chosen = log()
            with suppress(LogRequestError, TimeoutError, KainiteError):
                async with asyncio.timeout(1.0):
                    position = await chosen.position(shard)
                    reached = position.sequence if position else 0
                    last = min(self._units, reached + rng.randrange(1, 4))
                    if last > reached:
                        units = [
                            fragment(f"{shard}.{number}", [number], count=1) for number in range(reached + 1, last + 1)
                        ]
                        await append_next(chosen, shard, at(reached + 1), at(last), units)
        self.done += 1


# Python 3.11 forgets a connection that is accepted while its server is being closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_killed_each_unit_is_in_the_log_once(seed: int) -> None:
    rng = Random(seed)
    async with members() as all_:
        logs = {name: await all_.join(name) for name in ("a", "b", "c")}
        shards = Shards(40)
        tasks = [
            asyncio.create_task(shards.consume(f"s{number}", lambda: rng.choice(list(logs.values())), rng))
            for number in range(4)
        ]
        while shards.done < len(tasks):
            await asyncio.sleep(rng.uniform(0.01, 0.1))
            name = rng.choice(list(logs))
            await (all_.kill if rng.random() < 0.7 else all_.leave)(name)
            logs[name] = await all_.join(name, reached=False)
            if rng.random() < 0.5:
                await asyncio.wait_for(logs[name].reached(), LIMIT)
        await asyncio.gather(*tasks)
        expected = [f"s{shard}.{number}" for shard in range(4) for number in range(1, 41)]
        assert sorted(units_of(all_.store)) == sorted(expected)


async def test_another_applications_daemon_on_the_owners_port_takes_no_appends() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Both have one file of users. Where HEAD has the key, who reads our table is not let in by the other log's owner.
    access = Access(held=holding(USERS))
    at_the_port = replace(access, listen=Address("127.0.0.1", port))
    ours = MemoryStore()
    async with members(ours, table="ours") as all_, members(table="theirs") as others:
        await all_.join("a1", access=at_the_port)
        await all_.kill("a1")  # its lease still runs
        await others.join("b1", access=at_the_port)
        a2 = await all_.join("a2", reached=False, access=access)
        append = asyncio.create_task(a2.append("s0", at(1), at(9), [fragment("T", [1], count=1)]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(append), 1.0)
        append.cancel()
        assert units_of(others.store) == []

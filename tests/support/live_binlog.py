"""A live replica of a MariaDB source, with the traffic and the looks of :mod:`support.live_replica`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.snapshot_readers import SnapshotReaders
from kainite_spark.load.tasks import LoadStepResult, LoadTask
from support.binlog_loading import binlog_loading, following
from support.live_replica import ACCOUNTS, LiveReplica
from support.mariadb_source import session

TABLES: Final = (
    "CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL, pad VARCHAR(1000))",
    "CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT NOT NULL)",
    "CREATE TABLE journal (n BIGINT PRIMARY KEY)",
    "CREATE TABLE entry (n BIGINT PRIMARY KEY, giver INT NOT NULL, taker INT NOT NULL,"
    " CONSTRAINT entry_giver FOREIGN KEY (giver) REFERENCES account (id))",
)
"""Both servers read them."""
FILL: Final = (
    f"INSERT INTO account SELECT seq, 100, REPEAT('x', 900) FROM seq_1_to_{ACCOUNTS}",
    "INSERT INTO counter VALUES (1, 0)",
    "ANALYZE TABLE account, entry",
)


@dataclass
class BinlogTraffic:
    """Transactions in the source, as the class AccountTraffic of live_replica.py has them."""

    url: str
    count: int = 0

    def go(self, times: int) -> None:
        with closing(session(self.url)) as connection:
            for _ in range(times):
                self.count += 1
                n, new = self.count, ACCOUNTS + self.count
                connection.begin()
                for statement in (
                    f"INSERT INTO account VALUES ({new}, 1, 'new')",
                    f"UPDATE account SET balance = balance - 1 WHERE id = {1 + n % ACCOUNTS}",
                    f"UPDATE account SET balance = balance + 1 WHERE id = {new}",
                    f"INSERT INTO entry VALUES ({n}, {new}, 1)",
                    "UPDATE counter SET n = n + 1",
                    f"INSERT INTO journal VALUES ({n})",
                    *(
                        (f"DELETE FROM entry WHERE giver = {new - 2}", f"DELETE FROM account WHERE id = {new - 2}")
                        if n % 5 == 0
                        else ()
                    ),
                ):
                    connection.query(statement)
                connection.commit()


@dataclass
class CalledReaders:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` with a snapshot's readers, a few steps at once.

    Attributes:
        before: called with the first step of each few.
        parallelism: how many readers a load starts.
        ran: the steps that ran.
    """

    before: Callable[[int], object] = lambda _: None
    parallelism: int = 2
    ran: list[int] = field(default_factory=list)

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        look()
        self.before(steps[0])
        results = SnapshotReaders(self.parallelism).run(task, steps[:5], look)
        self.ran += [result.step for result in results]
        return results


@dataclass
class LiveBinlog(LiveReplica):
    """A live replica that follows its source."""

    made: Any
    loading: Any
    traffic: Any

    def source(self) -> BinlogCopySource:
        return BinlogCopySource(self.loading.ends)

    def steps(self, before: Callable[[int], object] = lambda _: None) -> StepRunner:
        return CalledReaders(before)


@contextmanager
def live_binlog(
    source: str, target: str, folder: Path, *, follows: bool = True, **options: Any
) -> Iterator[LiveBinlog]:
    """Gives a live replica; ``options`` say how its source is read."""
    with (
        binlog_loading(source, target, folder, (*TABLES, *FILL), TABLES, **options) as loading,
        following(loading, **options) as made,
        ThreadPoolExecutor(2) as pool,
        ExitStack() as last,
    ):
        loading.load()
        live = LiveBinlog(made, loading, BinlogTraffic(source))
        last.callback(live.over.set)
        if follows:
            live.threads = [pool.submit(made.follow, live.over), pool.submit(live.looking)]
        yield live
        live.over.set()
        for thread in live.threads:
            thread.result()
        assert live.seen == sorted(live.seen)

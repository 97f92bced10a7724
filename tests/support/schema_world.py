"""A running pipeline whose target changes: the daemon's parts on this loop, and an apply job.

Both began with the target's first tables. The stream, the children and Spark are left out: deltas come as emit lines,
tasks run in this process.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kainite.base.position import Position
from kainite.log.contract import LogStore
from kainite.log.state.loading import load_state
from kainite.log.views.unit_table import LogRow, read_rows
from kainite.settings import ApplySettings, LogSettings, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.admission import Admission
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.worker.units_of_work import UnitsOfWork
from kainite_spark.driver.current_target import CurrentTarget
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from kainite_spark.targets.contract import Target
from kainite_spark.targets.opening import open_target
from support.inline_runner import InlineRunner
from support.next_append import append_next
from support.owned_log import owned_log
from support.stores import Database
from support.waiting import until

TABLES = """
    CREATE TABLE parent (id bigint PRIMARY KEY, v bigint);
    CREATE TABLE item (id bigint PRIMARY KEY, v bigint CHECK (v >= 0), name varchar(5), parent_id bigint);
    CREATE TABLE other (id bigint PRIMARY KEY, v bigint);
"""
SHARD = "shard-0"


class SchemaWorld:
    """One log, one target, a daemon and an apply job that began with the target's first tables.

    Args:
        database: empty.
        store: the log's store; None: one in memory.
        log: settings of the log; None: those of a fast one.
    """

    def __init__(self, database: Database, store: LogStore | None = None, log: LogSettings | None = None) -> None:
        self.database = database
        database.run(TABLES)
        self.store = store or MemoryStore()
        self._log = log or LogSettings(table="t", owner="a", enabled=True, put_interval=0.0, poll=0.01)
        self.missing: set[str] = set()
        """Tables that are in none of ``targetSchemas``."""
        self._position = 0
        catalogue = self.load()
        target = open_target(database.url, catalogue)
        target.prepare("log/0", catalogue)
        self._runner = InlineRunner(self.store, "0", target)
        self.trouble: list[Exception] = []
        """What happens when the apply job opens the target anew, each once."""
        self._current = CurrentTarget(self.load, self._opened, catalogue, interval=0.0)
        self._current.tell(self._retarget)
        self._units: UnitsOfWork | None = None

    def load(self) -> Catalogue:
        found = reflect(self.database.url)
        tables = {name: table for name, table in found.tables.items() if name not in self.missing}
        return Catalogue(tables, found.default_schema)

    def _opened(self, catalogue: Catalogue | None) -> Target:
        if self.trouble:
            raise self.trouble.pop()
        return open_target(self.database.url, catalogue)

    @asynccontextmanager
    async def daemon(self, *, every: float = 0.01) -> AsyncIterator[None]:
        """Runs the daemon's parts; ``every`` as for :meth:`kainite.owner.owner.LogOwner.judge_by`."""
        catalogue = await CurrentCatalogue.read(self.load)
        catalogue._interval = 0.0  # noqa: SLF001
        async with owned_log(self.store, self._log, UowSettings()) as owner:
            owner.judge_by(catalogue, every)
            self._units = UnitsOfWork(owner, Admission(catalogue.signing), catalogue=catalogue)
            yield

    async def emit(self, uow: str, *deltas: dict[str, Any]) -> None:
        """Brings a whole unit to the log, as one call of a child does."""
        units = self._units
        assert units is not None
        end = {"uow": uow, "end": True, "count": len(deltas)}
        units.admission.feed(json.dumps({"deltas": [*({"uow": uow, **delta} for delta in deltas), end]}).encode())
        await units.settle()
        self._position += 1
        at = Position(self._position)
        await append_next(units.log, SHARD, at, at, units.admission.take("invalid"))

    async def apply(self) -> None:
        """Has the apply job apply what it can, and waits until the log has its outcomes."""
        stop = threading.Event()
        environment = ApplyEnvironment(
            ApplySettings(lease=60.0, idle=0.01), self.store, "0", "a job", self._runner.target, self._runner, "log/0",
            self._current,
        )  # fmt: skip
        await asyncio.to_thread(lambda: ApplyJob(environment, stop).run(once=True))
        await until(self._outcomes_taken)

    async def ask(self, action: str, uow: str) -> str:
        """Asks the owner as ``kainite uow`` does; returns its answer."""
        asked = self.store.put_request("0", {"action": action, "uow": uow, "by": "a test"})
        answers: list[Any] = []

        def answered() -> bool:
            answer = self.store.take_answer("0", asked)
            answers.extend([answer] if answer else [])
            return bool(answers)

        await until(answered)
        return f"{answers[0]['result']}: {answers[0]['message']}"

    def rows(self) -> dict[str, LogRow]:
        return {row.uow: row for row in read_rows(self.store, "0")}

    def statuses(self) -> dict[str, str]:
        return {uow: str(row.status) for uow, row in self.rows().items()}

    def micro_batches(self) -> int:
        """Returns how many micro-batches the apply job has run."""
        return len(self._runner.ran)

    def items(self, columns: str = "id, v") -> list[tuple[Any, ...]]:
        return self.database.rows(f"SELECT {columns} FROM item ORDER BY id")

    def _retarget(self, target: Any) -> None:
        self._runner.target = target

    def _outcomes_taken(self) -> bool:
        head = self.store.read_head("0:outcomes")
        assert head is not None
        batches = list(self.store.read_batches("0:outcomes", head.low_water_mark, data=False, strong=True))
        return not batches or load_state(self.store, "0").through >= batches[-1].last_id


def item(key: int, op: str = "upsert", **row: Any) -> dict[str, Any]:
    return {"table": "item", "op": op, "key": {"id": key}, **({"row": row} if row else {})}

"""A person who repairs rows of the target while units go on: ``kainite verify --repair`` without its comparison.

Each repair has rows as of one of the source's transactions, a *point*, as Kainite reads them under a snapshot;
``since`` is the first unit of the log behind it. Nothing differs in the target, so a repair that the log's owner puts
in its right place changes nothing, and one that puts an older value over a newer one is seen by the oracle. A request
may lie in the inbox for as long as the log has no owner, and some are sent twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kainite.log.state.loading import low_water_mark
from kainite.log.views.unit_times import load_units
from kainite.owner.repairing import packed
from simulation.replay import Replay
from simulation.source import Row

if TYPE_CHECKING:
    from simulation.world import World

PARTITION: Final = "0"
_LATEST: Final = 8
"""How many transactions back a point may lie."""


@dataclass
class Repairs:
    """Asks for repairs.

    Attributes:
        world: the world.
        done: how many were asked for.
    """

    world: World
    done: int = 0
    _rng: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        self._rng = Random(f"repairs {self.world.plan.seed}")

    def begin(self) -> None:
        """Has repairs asked for at the plan's times."""
        for at in self.world.plan.more.repairs:
            self.world.hub.after(at, self._ask)

    def _ask(self) -> None:
        """Asks for a repair as of a point that the log has passed; does nothing before the first unit."""
        places = self._places()
        passed = sorted(number for number in places if number > 1)[-_LATEST:]
        if not passed:
            return
        behind = self._rng.choice(passed)
        deltas = self._deltas(behind - 1)
        if not deltas:
            return
        self.done += 1
        request = {
            "action": "repair", "name": f"repair-{self.done}-0/{behind:X}", "since": str(places[behind]),
            "rows": str(len(deltas)), "deltas": packed(json.dumps(deltas).encode()), "by": "a person", "why": "a test",
        }  # fmt: skip
        times = (0.0, self._rng.uniform(0.1, 20.0)) if self._rng.random() < 0.3 else (self._rng.uniform(0.0, 3.0),)
        for later in times:
            self.world.hub.after(later, lambda: self._put(request))

    def _put(self, request: dict[str, str]) -> None:
        self.world.store.put_request(PARTITION, request)

    def _places(self) -> dict[int, int]:
        """Returns the ids in the log of the source's transactions, as far as the log goes back."""
        store = self.world.store
        units = load_units(store, PARTITION, low_water_mark(store, PARTITION)).units.values()
        return {int(unit.uow.removeprefix("T-")): unit.tid for unit in units if unit.uow.startswith("T-")}

    def _deltas(self, point: int) -> list[Row]:
        """Returns some rows as they were behind a transaction, as deltas."""
        source = self.world.source
        replay = Replay(source.tables, told=source.tells_parents)
        some = source.history[:point]
        replay.add(some, {one.number: one for one in some})
        found = [
            {"table": name, "op": "upsert", "key": {column: row[column] for column in table.key}, "row": row}
            for name, table in source.tables.items() for row in _rows(replay, name)
        ]  # fmt: skip
        replay.close()
        chosen = self._rng.sample(found, min(len(found), self._rng.choice((1, 2, 4))))
        return [{**delta, "ordinal": place} for place, delta in enumerate(chosen)]


def _rows(replay: Replay, name: str) -> list[dict[str, Any]]:
    """Returns the rows of a table, in the order of their keys."""
    cursor = replay.database.connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor]

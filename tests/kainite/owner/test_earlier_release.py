"""The owner goes on with a log that a release before version 2 of the format wrote, from whatever state it is in.

``golden_earlier_release.json`` has the items of such a log as that release left them: batches of version 1, a snapshot
that its owner has truncated up to, units in each status, two that are being collected, and an outcome that it had not
taken over.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kainite.base.position import Position
from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_detail import read_detail
from kainite.owner.requests import OK, REFUSED
from kainite.settings import LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.signature import Signatures
from support.names import unique
from support.owned_log import owned_log
from support.waiting import until

GOLDEN = Path(__file__).with_name("golden_earlier_release.json")
P = "0"


def earlier_log(client: Any, table: str) -> DynamoDBStore:
    """Returns a store with the items of the earlier release."""
    store = DynamoDBStore(client, table)
    store.create()
    for item in json.loads(GOLDEN.read_text(encoding="utf-8"))["items"]:
        client.put_item(TableName=table, Item={name: _value(value) for name, value in item.items()})
    return store


def _value(value: dict[str, Any]) -> dict[str, Any]:
    return {kind: base64.b64decode(inner) if kind == "B" else inner for kind, inner in value.items()}


def fragment(uow: str, row: int, ordinal: int, *, count: int) -> Fragment:
    deltas = (Delta("t", Operation.INSERT, {"id": row}, {"id": row, "note": "v"}, {}, ordinal),)
    written, read = Signatures(None).of(deltas)
    return Fragment(uow, deltas, written, read, (UnitEnd(count),))


async def decided(store: DynamoDBStore, action: str, uow: str) -> str:
    """Asks as ``kainite uow`` does; returns the owner's answer."""
    request = store.put_request(P, {"action": action, "uow": uow, "by": "a person"})
    answers: list[Mapping[str, str]] = []

    def is_answered() -> bool:
        if (answer := store.take_answer(P, request)) is not None:
            answers.append(answer)
        return bool(answers)

    await until(is_answered)
    return answers[0]["result"]


async def test_every_unit_of_an_earlier_release_goes_on(dynamodb: Any) -> None:
    table = unique("log")
    store = earlier_log(dynamodb, table)
    settings = LogSettings(table=table, owner="new", enabled=True, put_interval=0, poll=0.1)
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    async with owned_log(store, settings, UowSettings()) as owner:
        found = {unit.uow: [unit.tid, unit.status.value, unit.cause, unit.count] for unit in owner.state.units.values()}
        committed = golden["units"].pop("fresh")
        found.pop("fresh", None)  # its outcome is taken over at once
        assert found == golden["units"]
        assert {unit.uow: unit.count for unit in owner.state.open.values()} == golden["open"]
        await until(lambda: committed[0] not in owner.state.units)

        # Units that were open, or failed with parts missing, get the rest in this release's format.
        rest = [
            fragment("half", 70, 3, count=3),
            fragment("half2", 71, 3, count=3),
            fragment("overdue", 72, 2, count=2),
        ]
        await owner.append("shard-0", Position(1_000), Position(1_001), rest)
        for uow, rows in (("half", [7, 8, 70]), ("half2", [11, 12, 71]), ("overdue", [6, 72])):
            detail = read_detail(store, P, uow)
            assert detail is not None
            assert [delta["row"]["id"] for delta in detail.deltas] == rows
        unit = owner.state.find("half")
        assert unit is not None
        assert unit.status is UnitStatus.IN_PROGRESS

        # A person decides on units that failed before.
        owner.judge_by(await CurrentCatalogue.read(lambda: None))
        assert await decided(store, "retry", "overdue") == OK
        assert await decided(store, "retry", "refused") == OK
        assert await decided(store, "retry", "malformed") == REFUSED
        assert await decided(store, "discard", "malformed") == OK
        assert await owner.position("shard-0") == Position(1_001)
        units = owner.state.captured_units()

    async with owned_log(store, settings, UowSettings()) as owner:
        assert owner.state.captured_units() == units

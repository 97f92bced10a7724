"""Record processors not written for Kainite's protocol code: Amazon's libraries, and programs without any.

What they all do is in ``tests/children/README.md``. Each lives two lives under a real consumer: one that
ends with its shard, one that a stop ends.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kainite.settings import ChildProtocol
from kainite.worker.consumer_states import ConsumerState
from support.daemon_world import CHILDREN, LIMIT, World
from support.kinesis_double import KinesisDouble
from support.names import unique
from support.waiting import until

SHARD = "shardId-000000000000"
NODE_LIBRARY = Path(sys.prefix) / "peers/node/node_modules/aws-kcl"
PROGRAMS = {
    "kclpy_v2": (sys.executable, str(CHILDREN / "kclpy_notes.py"), "v2"),
    "kclpy_v3": (sys.executable, str(CHILDREN / "kclpy_notes.py"), "v3"),
    "aws_kcl": ("node", str(CHILDREN / "aws_kcl.js")),
    "bash": ("bash", str(CHILDREN / "raw.sh")),
    "perl": ("perl", str(CHILDREN / "raw.pl")),
    "v0": (sys.executable, str(CHILDREN / "raw_v0.py")),
}
RECORDS = [(b"\x00\xff\xfe\n{}", "schlüssel\u2028ключ"), (b"", "k"), (b'"quoted"\\', '"\\\r')]

each_program = pytest.mark.parametrize("program", PROGRAMS)


class Life:
    """One life of a program; its notes are a file of its own."""

    def __init__(self, program: str, world: World) -> None:
        self._notes = world.tmp / unique("notes")
        self.command = (*PROGRAMS[program], str(self._notes), str(NODE_LIBRARY))
        self.protocol = ChildProtocol.JSON_LINES_V0 if program == "v0" else ChildProtocol.JSON_LINES

    def notes(self) -> list[dict[str, Any]]:
        lines = self._notes.read_bytes().splitlines() if self._notes.exists() else []
        return [json.loads(line) for line in lines]

    def calls(self) -> list[str]:
        return [note["what"] for note in self.notes()]


CHECKPOINTED = [
    {"what": "checkpoint", "error": "IllegalArgumentException"},
    {"what": "checkpoint", "error": None},
    {"what": "checkpoint", "error": None},
]


@each_program
async def test_a_shards_whole_life(program: str, ending: World, double: KinesisDouble) -> None:
    last = [double.put(data, key) for data, key in RECORDS][-1]
    life = Life(program, ending)
    async with ending.consumer(life.command, protocol=life.protocol) as (consumer, task):
        await until(lambda: ending.stored_checkpoint() == str(last))
        double.split(SHARD)
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
        assert consumer.state is ConsumerState.COMPLETE
    notes = life.notes()
    assert notes[0] == {"what": "initialize", "shard": SHARD}
    data = [base64.b64encode(data).decode() for data, _ in RECORDS]
    assert notes[1] == {"what": "processRecords", "data": data, "keys": [key for _, key in RECORDS]}
    assert notes[2:5] == CHECKPOINTED
    assert notes[5:] == [{"what": "shardEnded"}, {"what": "checkpoint", "error": None}]
    assert ending.stored_checkpoint() == "SHARD_END"


@each_program
async def test_a_stop_in_peace(program: str, ending: World) -> None:
    life = Life(program, ending)
    async with ending.consumer(life.command, protocol=life.protocol) as (consumer, task):
        await until(lambda: consumer.state is ConsumerState.PROCESSING)
        consumer.stop()
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
    requested = [] if program == "v0" else ["shutdownRequested", "checkpoint"]
    assert life.calls() == ["initialize", *requested, "leaseLost"]
    assert ending.stored_checkpoint() == "TRIM_HORIZON"


@each_program
async def test_a_shard_among_several_streams_has_its_own_id_whatever_else_it_is_told(
    program: str, ending: World, double: KinesisDouble
) -> None:
    """Checks that the field ``streamIdentifier``, which KCL's messages lack, disturbs no library."""
    last, stream = double.put(b"x"), f"123456789012:{ending.name}:7"
    life = Life(program, ending)
    async with ending.consumer(life.command, protocol=life.protocol, among=stream):
        await until(lambda: ending.stored_checkpoint(f"{stream}:{SHARD}") == str(last))
    assert life.notes()[0] == {"what": "initialize", "shard": SHARD}

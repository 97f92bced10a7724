#!/usr/bin/env python3
"""Change records of ``kainite_demo.extractor`` to deltas, with Amazon's own library (amazon_kclpy).

One process per shard reads KCL's json-lines from stdin and writes its answers to stdout. The
deltas go out on the same stdout, on ``emit`` lines between a ``processRecords`` request and its
status; the Java MultiLangDaemon skips such lines.

State: the time of the last checkpoint. A crash loses nothing: records after the last checkpoint
are delivered again, emitted again, and recognised by Kainite.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TextIO

from amazon_kclpy import kcl, messages
from amazon_kclpy.checkpoint_error import CheckpointError
from amazon_kclpy.v3 import processor

CHECKPOINT_EVERY_S: Final = 1.0
DELTAS_PER_LINE: Final = 1000
# What a checkpoint may answer without anything being wrong here: the next one will say it all.
TRY_LATER: Final = frozenset({"ThrottlingException", "KinesisClientLibDependencyException"})
LAST_TRIES: Final = 10
TRY_AGAIN_S: Final = 0.5
LEASE_GONE: Final = "ShutdownException"

Json = Any


def delta_of(record: dict[str, Json]) -> dict[str, Json]:
    """The delta, or the end of a unit, that a change record stands for.

    Raises:
        KeyError: it is no change record.
    """
    if record.get("end"):
        return {name: record[name] for name in ("uow", "end", "count", "number")}
    types = record["types"]
    key = _typed(record["key"], types)
    delta = {"uow": record["uow"], "table": record["relation"], "op": record["operation"], "ordinal": record["ordinal"]}
    row = _row(record["operation"], key, _typed(record["new"], types))
    return delta | {name: value for name, value in (("key", key), ("row", row)) if value}


def _row(operation: str, key: dict[str, Json], new: dict[str, Json]) -> dict[str, Json]:
    """An update writes no key column that keeps its value, unless there is nothing else to write."""
    if operation != "update":
        return new
    return {name: value for name, value in new.items() if name not in key or key[name] != value} or new


def _typed(values: dict[str, str | None], types: dict[str, int]) -> dict[str, Json]:
    return {name: _value(text, types[name]) for name, text in values.items()}


def _value(text: str | None, type_oid: int) -> Json:
    """PostgreSQL's text as JSON. Other types stay text: numeric and time stamps would lose digits."""
    convert = _CONVERSIONS.get(type_oid)
    return text if text is None or convert is None else convert(text)


# OIDs of pg_type: bool, int8, int2, int4, oid, json, jsonb.
_CONVERSIONS: dict[int, Callable[[str], Json]] = {
    16: "t".__eq__,
    20: int,
    21: int,
    23: int,
    26: int,
    114: json.loads,
    3802: json.loads,
}


def emit_lines(records: Sequence[messages.Record]) -> Iterator[str]:
    """The ``emit`` lines for a batch, of at most :data:`DELTAS_PER_LINE` deltas each."""
    for start in range(0, len(records), DELTAS_PER_LINE):
        some = records[start : start + DELTAS_PER_LINE]
        deltas = [delta_of(json.loads(record.binary_data)) for record in some]
        yield json.dumps({"action": "emit", "deltas": deltas}, separators=(",", ":"))


class PostgresqlChanges(processor.RecordProcessorBase):  # type: ignore[misc]
    """KCL's record processor; ``clock`` gives seconds that never go back."""

    def __init__(self, output: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._checkpointed = clock()

    def initialize(self, initialize_input: messages.InitializeInput) -> None:
        pass

    def process_records(self, process_records_input: messages.ProcessRecordsInput) -> None:
        try:
            for line in emit_lines(process_records_input.records):
                self._output.write(f"{line}\n")
        except Exception:
            # kclpy reports success for a batch whose processor raised, and its records would be
            # skipped. Only an exit gets them delivered again.
            traceback.print_exc()
            sys.exit(1)
        if self._clock() - self._checkpointed >= CHECKPOINT_EVERY_S:
            self._checkpoint(process_records_input.checkpointer)

    def lease_lost(self, lease_lost_input: messages.LeaseLostInput) -> None:
        pass

    def shard_ended(self, shard_ended_input: messages.ShardEndedInput) -> None:
        self._checkpoint(shard_ended_input.checkpointer, tries=LAST_TRIES)

    def shutdown_requested(self, shutdown_requested_input: messages.ShutdownRequestedInput) -> None:
        self._checkpoint(shutdown_requested_input.checkpointer, tries=LAST_TRIES)

    def _checkpoint(self, checkpointer: kcl.Checkpointer, tries: int = 1) -> None:
        """Checkpoint the last record delivered; the shard's end has to be tried until it is granted."""
        for left in reversed(range(tries)):
            try:
                checkpointer.checkpoint()
                self._checkpointed = self._clock()
                return
            except CheckpointError as error:
                if error.value == LEASE_GONE:
                    return
                if error.value not in TRY_LATER:
                    sys.exit(f"checkpoint refused: {error.value}")
            if left:
                time.sleep(TRY_AGAIN_S)


def main() -> None:
    kcl.KCLProcess(PostgresqlChanges(sys.stdout)).run()


if __name__ == "__main__":
    main()

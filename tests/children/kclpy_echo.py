"""A record processor on amazon_kclpy (v3): it writes what it gets to a file, checkpoints, and emits.

``kclpy_echo.py FILE``. Each call is a line of JSON in FILE. One delta a record is emitted for the unit named
by the record's payload when the payload starts with ``T``; ``end`` follows.
"""

import json
import sys
from pathlib import Path
from typing import Any

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor


class Echo(processor.RecordProcessorBase):  # type: ignore[misc]  # kclpy is not typed
    def __init__(self, path: Path) -> None:
        self._path = path

    def initialize(self, initialize_input: Any) -> None:
        self._note("initialize", shard=initialize_input.shard_id, sequence=initialize_input.sequence_number)

    def process_records(self, process_records_input: Any) -> None:
        payloads = [record.binary_data.decode() for record in process_records_input.records]
        keys = [record.partition_key for record in process_records_input.records]
        for payload in payloads:
            if payload.startswith("T"):
                self._emit(payload)
        self._note("processRecords", payloads=payloads, keys=keys, behind=process_records_input.millis_behind_latest)
        self._checkpoint(process_records_input.checkpointer)

    def lease_lost(self, lease_lost_input: Any) -> None:
        self._note("leaseLost")

    def shard_ended(self, shard_ended_input: Any) -> None:
        self._note("shardEnded")
        shard_ended_input.checkpointer.checkpoint()

    def shutdown_requested(self, shutdown_requested_input: Any) -> None:
        self._note("shutdownRequested")
        self._checkpoint(shutdown_requested_input.checkpointer)

    def _checkpoint(self, checkpointer: Any) -> None:
        try:
            checkpointer.checkpoint()
        except kcl.CheckpointError as error:
            self._note("checkpoint error", error=error.value)

    def _emit(self, payload: str) -> None:
        delta = {"uow": payload, "table": "t", "op": "insert", "key": {"id": payload}, "row": {"id": payload}}
        end = {"uow": payload, "end": True, "count": 1}
        sys.stdout.write(json.dumps({"action": "emit", "deltas": [delta, end]}) + "\n")

    def _note(self, what: str, **fields: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"what": what, **fields}) + "\n")


kcl.KCLProcess(Echo(Path(sys.argv[1]))).run()

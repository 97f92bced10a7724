"""A record processor on amazon_kclpy, on its v2 or v3 interface; see ``tests/children/README.md`` for what it does.

``kclpy_notes.py v2|v3 FILE``
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

from amazon_kclpy import kcl
from amazon_kclpy.v2 import processor as v2
from amazon_kclpy.v3 import processor as v3


class NotesV2(v2.RecordProcessorBase):  # type: ignore[misc]  # kclpy is not typed
    def initialize(self, initialize_input: Any) -> None:
        note("initialize", shard=initialize_input.shard_id)

    def process_records(self, process_records_input: Any) -> None:
        process(process_records_input)

    def shutdown(self, shutdown_input: Any) -> None:
        if shutdown_input.reason == "TERMINATE":
            end("shardEnded", shutdown_input)
        else:
            note("leaseLost")

    def shutdown_requested(self, shutdown_requested_input: Any) -> None:
        end("shutdownRequested", shutdown_requested_input)


class NotesV3(v3.RecordProcessorBase):  # type: ignore[misc]
    def initialize(self, initialize_input: Any) -> None:
        note("initialize", shard=initialize_input.shard_id)

    def process_records(self, process_records_input: Any) -> None:
        process(process_records_input)

    def lease_lost(self, lease_lost_input: Any) -> None:
        note("leaseLost")

    def shard_ended(self, shard_ended_input: Any) -> None:
        end("shardEnded", shard_ended_input)

    def shutdown_requested(self, shutdown_requested_input: Any) -> None:
        end("shutdownRequested", shutdown_requested_input)


def process(call: Any) -> None:
    data = [base64.b64encode(record.binary_data).decode() for record in call.records]
    note("processRecords", data=data, keys=[record.partition_key for record in call.records])
    for sequence in ("SHARD_END", call.records[0].sequence_number, None):
        checkpoint(call.checkpointer, sequence)


def end(what: str, call: Any) -> None:
    note(what)
    checkpoint(call.checkpointer, None)


def checkpoint(checkpointer: Any, sequence: str | None) -> None:
    error = None
    try:
        checkpointer.checkpoint(sequence)
    except kcl.CheckpointError as refused:
        error = refused.value
    note("checkpoint", error=error)


def note(what: str, **fields: Any) -> None:
    with Path(sys.argv[2]).open("a") as file:
        file.write(json.dumps({"what": what, **fields}) + "\n")


kcl.KCLProcess({"v2": NotesV2, "v3": NotesV3}[sys.argv[1]]()).run()

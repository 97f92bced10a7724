#!/usr/bin/env python3
"""A record processor in Python, with Amazon's library for it (amazon_kclpy): JSON records in, deltas out.

Get ready:  KCL_MVN_REPO_SEARCH_URL=data:, pip install -r requirements.txt
Run:        executableName = python3 json_lines.py

Nothing but messages may go to standard output: print() to sys.stderr.
"""

import json
import sys
from typing import Any

from amazon_kclpy import kcl, messages
from amazon_kclpy.v3 import processor


def delta(data: bytes) -> Any:
    """Returns the delta of a record; the end of a unit of work stays as it is."""
    record = json.loads(data)
    if record.get("end") is True:
        return {"uow": record["uow"], "count": record["count"], **record}
    row = {name: value for name, value in record.items() if name not in ("uow", "table")}
    return {"uow": record["uow"], "table": record["table"], "op": "upsert", "key": {"id": record["id"]}, "row": row}


def emit_line(record: messages.Record) -> str:
    try:
        return json.dumps({"action": "emit", "deltas": [delta(record.binary_data)]}, allow_nan=False) + "\n"
    except Exception as problem:  # amazon_kclpy would swallow it, and the rest of the batch with it
        print(f"bad record {record.sequence_number}: {type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
        return ""


def checkpoint(checkpointer: kcl.Checkpointer) -> None:
    try:
        checkpointer.checkpoint()
    except kcl.CheckpointError as refused:  # the next one will say as much
        print(f"no checkpoint: {refused}", file=sys.stderr, flush=True)


class Orders(processor.RecordProcessorBase):  # type: ignore[misc]
    def initialize(self, initialize_input: messages.InitializeInput) -> None:
        pass

    def process_records(self, process_records_input: messages.ProcessRecordsInput) -> None:
        sys.stdout.writelines(map(emit_line, process_records_input.records))
        checkpoint(process_records_input.checkpointer)

    def lease_lost(self, lease_lost_input: messages.LeaseLostInput) -> None:
        pass  # another worker has the shard: too late for a checkpoint

    def shard_ended(self, shard_ended_input: messages.ShardEndedInput) -> None:
        checkpoint(shard_ended_input.checkpointer)

    def shutdown_requested(self, shutdown_requested_input: messages.ShutdownRequestedInput) -> None:
        checkpoint(shutdown_requested_input.checkpointer)


kcl.KCLProcess(Orders()).run()

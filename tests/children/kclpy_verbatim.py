"""A record processor on amazon_kclpy (v3) that writes every record's payload to the daemon as it is: an emit line.

``kclpy_verbatim.py [never]``: with ``never`` it never checkpoints while it processes records, so that all of them
are delivered again to the next one.
"""

import contextlib
import sys
from typing import Any

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor


class Verbatim(processor.RecordProcessorBase):  # type: ignore[misc]  # kclpy is not typed
    def initialize(self, initialize_input: Any) -> None:
        pass

    def process_records(self, process_records_input: Any) -> None:
        sys.stdout.flush()
        for record in process_records_input.records:
            sys.stdout.buffer.write(record.binary_data + b"\n")
        sys.stdout.buffer.flush()
        if "never" not in sys.argv:
            process_records_input.checkpointer.checkpoint()

    def lease_lost(self, lease_lost_input: Any) -> None:
        pass

    def shard_ended(self, shard_ended_input: Any) -> None:
        shard_ended_input.checkpointer.checkpoint()

    def shutdown_requested(self, shutdown_requested_input: Any) -> None:
        with contextlib.suppress(kcl.CheckpointError):
            if "never" not in sys.argv:
                shutdown_requested_input.checkpointer.checkpoint()


kcl.KCLProcess(Verbatim()).run()

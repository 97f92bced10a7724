"""Nobody reads the daemon's log any more: records go on to be delivered, and SIGTERM still ends the daemon."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import Any

from support.fleet_world import LIMIT, fleet
from support.names import unique


def test_a_daemon_whose_log_nobody_reads_delivers_and_stops(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b"x" * 4096)  # the first line of the daemon already finds no room
    try:
        with fleet(kinesis, dynamodb, moto_endpoint, unique("unread"), tmp_path, shards=1, failover=30.0) as members:
            daemon = members.join("one", stderr=writing)
            members.eventually(members.calls, "the daemon delivers nothing")
            members.caught_up()
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(LIMIT) == 0
    finally:
        os.close(reading)
        os.close(writing)

"""moto's server as a process: it prints its address, and ends with its standard input."""

from __future__ import annotations

import subprocess
import sys

from kainite_demo.services import kinesis_client

LIMIT = 60.0


def test_it_serves_until_its_input_closes() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "kainite_demo.moto_process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert kinesis_client(address).list_streams()["StreamNames"] == []
        process.stdin.close()

        assert process.wait(LIMIT) == 0

"""Record processors that mean harm: what they inherit, what they leave behind, and how much they may say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import psutil
import pytest

from kainite.child.json_lines.dialect import MAX_LINE
from kainite.child.piped_process import LOG_LINE
from support.names import unique
from support.waiting import eventually

LIMIT = 60.0
MOST_BYTES = 6 * MAX_LINE
"""What the daemon may take for a line that never ends: the line, its pieces, its copies, and the daemon itself."""

INHERITED = """
import os, sys
with open(sys.argv[1] + "/fds.new", "w") as said:
    # The descriptor of the listing itself is closed by the time that it is looked at.
    own = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd") if int(each) != said.fileno()]
    said.write("\\n".join(os.readlink(each) for each in own if os.path.lexists(each)))
os.rename(sys.argv[1] + "/fds.new", sys.argv[1] + "/fds")
sys.stdin.read()
"""

ENDLESS_LINE = """
import os, sys
os.write(1, b"{")
block = b"x" * (1 << 20)
for _ in range(1024):
    os.write(1, block)
open(sys.argv[1] + "/said", "w").close()
sys.stdin.read()
"""

STRAY_LINE = """
import json, os, sys
block = b"x" * (1 << 20)
for _ in range(128):
    os.write(1, block)
os.write(1, b"\\n")
for line in sys.stdin:
    asked = json.loads(line)["action"]
    print(json.dumps({"action": "status", "responseFor": asked}), flush=True)
    open(sys.argv[1] + "/" + asked, "w").close()
"""

SURVIVOR = """
import os, signal, sys, time
folder = sys.argv[1]
if not os.path.exists(folder + "/pid"):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        with open(folder + "/pid.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(folder + "/pid.new", folder + "/pid")
        try:
            while True:
                os.write(1, b'\\n{"action":"status","responseFor":"initialize"}\\n')
                time.sleep(0.01)
        except OSError as error:
            with open(folder + "/why", "w") as file:
                file.write(error.strerror)
            os._exit(0)
    while not os.path.exists(folder + "/pid"):
        time.sleep(0.01)
    os._exit(1)
open(folder + "/second", "w").close()
sys.stdin.read()
"""


@contextmanager
def daemon(endpoint: str, folder: Path, program: str, inherited: int | None = None) -> Iterator[psutil.Process]:
    """Runs a daemon with a stream of one shard, whose record processor is ``program``."""
    name, script = unique("app"), folder / "processor.py"
    script.write_text(program)
    boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1").create_stream(StreamName=name, ShardCount=1)
    settings = {
        "applicationName": name,
        "streamName": name,
        "regionName": "us-east-1",
        "kinesisEndpoint": endpoint,
        "dynamoDBEndpoint": endpoint,
        "executableName": f"{sys.executable} {script} {folder}",
        "taskBackoffTimeMillis": "10",
        "childKillMillis": "500",
    }
    properties = folder / "app.properties"
    properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    line = [sys.executable, "-m", "kainite", "run", "-p", str(properties)]
    passed = () if inherited is None else (inherited,)
    with (folder / "log").open("wb") as log, subprocess.Popen(line, stderr=log, pass_fds=passed) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT)


def test_a_processor_inherits_its_three_pipes_and_nothing_else(moto_endpoint: str, tmp_path: Path) -> None:
    # A descriptor that the daemon itself has inherited, and would pass on if it were not closed.
    reading, writing = os.pipe()
    try:
        with daemon(moto_endpoint, tmp_path, INHERITED, inherited=writing):
            eventually((tmp_path / "fds").exists, LIMIT)
    finally:
        os.close(reading)
        os.close(writing)
    found = (tmp_path / "fds").read_text().splitlines()
    assert len(found) == 3, found
    assert all(each.startswith("pipe:") for each in found)


@pytest.mark.timeout(180)
def test_a_line_without_an_end_takes_the_daemon_a_bounded_memory(moto_endpoint: str, tmp_path: Path) -> None:
    most = 0
    with daemon(moto_endpoint, tmp_path, ENDLESS_LINE) as process:

        def told() -> bool:
            nonlocal most
            most = max(most, process.memory_info().rss)
            return "wrote a message of more than" in (tmp_path / "log").read_text()

        eventually(told, LIMIT)
    assert most < MOST_BYTES


@pytest.mark.timeout(180)
def test_a_long_line_that_is_no_message_is_shown_in_part_and_ends_no_child(moto_endpoint: str, tmp_path: Path) -> None:
    with daemon(moto_endpoint, tmp_path, STRAY_LINE) as process:
        eventually((tmp_path / "initialize").exists, LIMIT)
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT)
    assert (tmp_path / "shutdownRequested").exists()
    log = (tmp_path / "log").read_text()
    assert log.count("line on stdout skipped") == 1
    assert f"({MAX_LINE - LOG_LINE:,} characters more, and the rest of the line)" in log
    assert len(log) < 4 * LOG_LINE
    assert log.count("child started") == 1


def test_a_descendant_that_left_its_group_says_nothing_for_the_next_child(moto_endpoint: str, tmp_path: Path) -> None:
    with daemon(moto_endpoint, tmp_path, SURVIVOR):
        try:
            eventually((tmp_path / "second").exists, LIMIT)
            eventually(lambda: (tmp_path / "why").exists() and (tmp_path / "why").read_text(), LIMIT)
        finally:
            survivor = int((tmp_path / "pid").read_text())
            if psutil.pid_exists(survivor):
                os.kill(survivor, signal.SIGKILL)
    assert (tmp_path / "why").read_text() == "Broken pipe"

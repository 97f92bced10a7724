"""An extraction from its start to its exit code: what must be there, and what signals do to the cycle under way."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import orjson
import pytest

from kainite.base.errors import SettingsError, SourceError, StreamError
from kainite.extract.run import OPEN_FILES
from support.extract_bench import is_gone, wait_until
from support.ports import free_port

LIMIT = 60.0
Whole: TypeAlias = Callable[[int], list[tuple[str, int]]]


def wait_a_second_for(process: subprocess.Popen[bytes]) -> None:
    """Waits until a second signal counts: a second after the first, and some more, as the first may be noticed late."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(2.5)


def test_a_signal_lets_the_cycle_under_way_end(bench: Any, whole: Whole) -> None:
    script = f"""cd {bench.folder}; while read -r request; do
        touch asked; until test -e go; do sleep 0.05; done
        printf '%s\\n' '{{"uow":"T0","ordinal":0}}' '{{"uow":"T0","ordinal":1}}' '{{"uow":"T0","end":true}}'
        printf '%s\\n' '{{"offset":1}}'
        printf '\\0'
    done"""
    path = bench.cyclic("bash", "-c", script)
    bench.begin("null")
    with bench.running(path, "--json") as process:
        wait_until((bench.folder / "asked").exists, process)
        process.send_signal(signal.SIGTERM)
        (bench.folder / "go").touch()
        output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    assert (bench.start(), bench.units()) == (1, whole(1))
    events = [orjson.loads(line) for line in output.splitlines()]
    assert [event["event"] for event in events] == ["started", "cycle", "ended"]
    assert (events[1]["messages"], events[1]["offset"], events[-1]["records"], events[-1]["units"]) == (3, 1, 3, 1)


@pytest.mark.parametrize(("grace", "signals", "status"), [("100", 1, 0), ("600000", 2, 1)])
def test_a_cycle_that_does_not_end_is_given_up(bench: Any, grace: str, signals: int, status: int) -> None:
    path = bench.counting(7, "hang", shutdownGraceMillis=grace)
    with bench.running(path) as process:
        wait_until((bench.folder / "fault").exists, process)
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            wait_a_second_for(process)
        assert process.wait(LIMIT) == status
    assert bench.start() == 3
    assert all(is_gone(pid) for pid in bench.pids())


def test_two_extractions_do_not_share_an_offset_file(bench: Any) -> None:
    path = bench.counting(7, "hang")
    with bench.running(path) as process:
        wait_until((bench.folder / "fault").exists, process)
        with pytest.raises(SourceError, match="another kainite extract runs with it"):
            bench.once(path)


def test_a_low_limit_of_open_files_is_raised_and_the_program_inherits_it(bench: Any) -> None:
    path = bench.settings("sh", "-c", "ulimit -n")
    kainite = [sys.executable, "-m", "kainite", "extract", "-p", str(path), "--once"]
    subprocess.run(["sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", *kainite], check=True, timeout=LIMIT)
    assert bench.records() == [str(OPEN_FILES).encode()]


def test_a_stream_that_is_not_there_is_said_before_anything_is_extracted(bench: Any) -> None:
    with pytest.raises(StreamError, match="'nowhere' does not exist"):
        bench.once(bench.settings("touch", str(bench.folder / "started"), streamName="nowhere"))
    assert not (bench.folder / "started").exists()


def test_a_program_that_is_not_there_is_said_before_the_offset_file_is_looked_for(bench: Any) -> None:
    with pytest.raises(SettingsError, match="extractorName: there is no program 'no-such-program'"):
        bench.once(bench.cyclic("no-such-program"))


def test_health_and_metrics_say_what_the_extractor_does_and_how_far_its_source_is_ahead(bench: Any) -> None:
    script = """while read -r request; do
        test -e told || printf '%s\\n' '{"uow":"T0","end":true}'
        printf '%s\\n' '{"offset":1,"lag":{"time":1,"heldBytes":77}}'; touch told
        printf '\\0'
    done"""
    port = free_port()
    path = bench.cyclic("bash", "-c", f"cd {bench.folder}; {script}", extractMetricsPort=str(port))
    bench.begin("null")

    def page(name: str) -> str:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=LIMIT) as reply:
            return str(reply.read(), "utf-8")
        return ""

    with bench.running(path) as process:
        wait_until(lambda: "kainite_extract_source_held_bytes 77" in page("metrics"), process)
        wait_until(lambda: "kainite_extract_records_total 1" in page("metrics"), process)
        report = orjson.loads(page("health"))
    assert report["healthy"]
    assert report["source"] == {"time": 1, "heldBytes": 77}

"""Cyclic extractors: real children that die, hang and break the protocol in the midst of a cycle."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import orjson
import pytest

from kainite.base.errors import SourceError
from support.extract_bench import is_gone, wait_until

LIMIT = 60.0
Whole: TypeAlias = Callable[[int], list[tuple[str, int]]]


@pytest.mark.parametrize("fault", ["die", "hang", "junk", "offset"])
def test_an_extractor_that_fails_in_a_cycle_is_asked_the_same_again_and_nothing_comes_twice(
    bench: Any, whole: Whole, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = bench.counting(7, fault, extractorTimeoutMillis="1500" if fault == "hang" else "60000")
    for _ in range(3):
        assert bench.once(path) == 0
    assert bench.start() == 7
    assert bench.units() == whole(7)
    asked = [r.kainite_fields["line"] for r in caplog.records if r.getMessage() == "child stderr"]  # type: ignore[attr-defined]
    assert asked == [f"asked from {start}" for start in (None, 3, 3, 6)]


def test_a_source_that_is_away_counts_as_no_failure_and_the_same_is_asked_again(bench: Any) -> None:
    script = f"""cd {bench.folder}; while read -r request; do
        echo "$request" >> asked; echo half
        test $(wc -l < asked) -ge 5 || exit 75
        printf '{{"offset":1}}\\n\\0'
    done"""
    path = bench.cyclic("sh", "-c", script, extractorTries="1")
    bench.begin("null")
    assert bench.once(path) == 0
    assert (bench.start(), bench.records()) == (1, [b"half"]), "nothing of an answer that was broken off"
    assert (bench.folder / "asked").read_text() == '{"start":null,"end":null}\n' * 5


def test_what_is_put_before_the_end_comes_again_and_is_recognisable(bench: Any, whole: Whole) -> None:
    path = bench.counting(7, "hang", extractorTimeoutMillis="1500")
    for _ in range(3):
        assert bench.once(path, hold_bytes=0) == 0
    units = bench.units()
    assert sorted(set(units)) == whole(7)
    assert len(units) > len(set(units)), "half of a cycle was put, and the whole of it again"


def test_kainite_killed_in_the_midst_of_a_cycle_leaves_nothing_to_come_twice(bench: Any, whole: Whole) -> None:
    path = bench.counting(7, "hang")
    with bench.running(path) as process:
        wait_until((bench.folder / "fault").exists, process)
        process.kill()
        process.wait()
    os.kill(bench.pids()[-1], signal.SIGKILL)  # it does not look at its input: this one would stay for ever
    assert (bench.start(), bench.units()) == (3, whole(3))
    with bench.running(path) as process:
        wait_until(lambda: bench.start() == 7, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0
    assert bench.units() == whole(7)


def test_killed_at_any_moment_every_record_is_there_and_each_repeat_is_the_same(
    bench: Any, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AHEAD", "yes")
    path = bench.counting(120)
    for _ in range(2):
        reached = bench.start() or 0
        with bench.running(path) as process:
            aim = min(reached + 20, 119)  # it may be far on when the kill comes
            wait_until(lambda aim=aim: (bench.start() or 0) > aim, process)  # type: ignore[misc]
            process.kill()
            process.wait()
    with bench.running(path) as process:
        wait_until(lambda: bench.start() == 120, process)
    assert sorted(set(bench.units())) == whole(120)
    assert all(is_gone(pid) for pid in bench.pids()[:-1]), "an extractor ends when Kainite has"


def test_ranges_of_time_follow_each_other_and_one_that_was_not_answered_is_asked_for_again(bench: Any) -> None:
    script = f"""cd {bench.folder}; while read -r request; do
        echo "$request" >> requests; test $(wc -l < requests) -ne 2 || kill -9 $$
        printf '%s\\n\\0' "$request"; done"""
    path = bench.cyclic("bash", "-c", script, offsets="time")
    bench.begin('"2026-11-01T00:00:00.000000Z"', "time")
    for _ in range(3):
        assert bench.once(path) == 0
    requests = [orjson.loads(line) for line in (bench.folder / "requests").read_text().splitlines()]
    assert requests[1] == requests[2]
    answered = [requests[0], *requests[2:]]
    assert answered[0]["start"] == "2026-11-01T00:00:00.000000Z"
    assert all(one["end"] == other["start"] < other["end"] for one, other in pairwise(answered))
    assert bench.start() == answered[-1]["end"]
    assert sorted(orjson.loads(record)["start"] for record in bench.records()) == [r["start"] for r in answered]


def test_an_extractor_that_keeps_its_own_offset_is_asked_with_empty_messages(bench: Any) -> None:
    script = f"""cd {bench.folder}; n=$(cat stored 2>/dev/null || echo 0); given=$n; while read -r request; do
        echo "$given" > stored; given=$((given + 1)); printf '[%s]message %s\\n\\0' "$request" "$given"; done"""
    path = bench.cyclic("bash", "-c", script, offsets="extractor")
    for _ in range(2):
        assert bench.once(path) == 0
    assert bench.records() == [b"[]message 1"] * 2, "what was not said to be on the stream comes again"


def test_other_markers_are_told_and_spoken(bench: Any) -> None:
    script = r"""import os, sys
eom, eop = (os.environ[f"KAINITE_{name}"].encode().decode("unicode_escape") for name in ("EOM", "EOP"))
request = b""
while not request.endswith(eom.encode()):
    request += os.read(0, 1)
sys.stdout.write(f"line 1\nline 2{eom}{sys.argv[1].lower()}{eom}{eop}")"""
    markers = {"markerEom": r"\x1e", "markerEop": "EOP", "markersArguments": "--eop={eop}"}
    path = bench.cyclic(sys.executable, "-c", script, offsets="extractor", **markers)
    assert bench.once(path) == 0
    assert sorted(bench.records()) == [b"--eop=eop", b"line 1\nline 2"]


def test_a_program_that_does_not_answer_is_given_up(bench: Any) -> None:
    path = bench.cyclic("sh", "-c", "read -r _; echo no source >&2; exit 4", offsets="extractor")
    with pytest.raises(SourceError, match=r"given up after 3 failures in a row .* ended with status 4: no source$"):
        bench.once(path)


@pytest.mark.timeout(60)
def test_an_extractor_that_writes_before_it_is_asked_is_refused(bench: Any) -> None:
    path = bench.cyclic("bash", "-c", "read -r _; printf 'a\\n\\0b\\n'; read -r _; printf '\\0'", offsets="extractor")
    with bench.running(path) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, b"")
        assert any(b"wrote while no cycle was requested" in line for line in lines)
    assert b"b" not in bench.records()

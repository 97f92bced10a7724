"""``kainite extract --check``: the extractor's settings, what they promise, and what would not work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main


def call(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["extract", "-p", str(path), *options])


def test_a_sound_file_s_check_says_what_is_promised_and_shows_no_other_settings(bench: Any) -> None:
    result = call(bench.counting(1), "--check", "--json")
    report = orjson.loads(result.stdout)
    assert (result.exit_code, report["problems"]) == (0, [])
    assert report["notes"][0].startswith("offsets kept by Kainite: exactly once for messages with uow and ordinal")
    keys = {line["key"] for line in report["settings"]}
    assert keys > {"extractorName", "streamName", "markerEop"}
    assert keys.isdisjoint({"executableName", "target", "failoverTimeMillis"})


@pytest.mark.parametrize(
    ("keys", "promise"),
    [
        ({}, "plain: what a failed run wrote stays on the stream"),
        ({"extractorMode": "cyclic"}, "offsets kept by the extractor: at least once, if it stores its offset when"),
    ],
)
def test_weaker_promises_are_said_too(bench: Any, keys: dict[str, str], promise: str) -> None:
    result = call(bench.settings("true", **keys), "--check", "--json")
    assert orjson.loads(result.stdout)["notes"][0].startswith(promise)


@pytest.mark.parametrize(
    ("command", "keys", "problem"),
    [
        ("no-such-program", {}, "extractorName: there is no program 'no-such-program' on the PATH"),
        ("", {"executableName": "cat"}, "extractorName is missing"),
        ("true", {"extractorMode": "circular"}, "extractorMode: must be one of plain, cyclic"),
        ("true", {"extractorMode": "cyclic", "extractorOffsets": "time"}, "extractorOffsetFile is missing"),
        (
            "true",
            {"extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "o"},
            "No such file or directory; say where to begin with --begin, once",
        ),
    ],
)
def test_what_would_not_work_is_said_by_check_and_by_the_start(
    bench: Any, command: str, keys: dict[str, str], problem: str
) -> None:
    path = bench.settings(*filter(None, [command]), **keys)
    checked, started = call(path, "--check", "--json"), call(path)
    assert (checked.exit_code, started.exit_code) == (1, 1)
    assert problem in " ".join(orjson.loads(checked.stdout)["problems"])
    assert problem in started.stderr
    assert started.stderr.count("\n") == 1

"""Plain extractors: real programs in shell, onto moto's Kinesis."""

from __future__ import annotations

import logging
import signal
import time
from base64 import b64decode, b64encode
from typing import Any

import pytest

from kainite.base.errors import SourceError, StreamError
from kainite.base.record import RawRecord
from kainite.kinesis.aggregation import expand

LIMIT = 60.0


def test_every_message_goes_on_the_stream(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    script = r"""printf 'one\n\n'; echo "I am $0" >&2; printf '{"uow":"T1"}\n{"uow":"T1","end":true}\nlast'"""
    assert bench.once(bench.settings("sh", "-c", script, "the-extractor")) == 0
    assert sorted(bench.records()) == [b"last", b"one", b'{"uow":"T1","end":true}', b'{"uow":"T1"}']
    assert [b'{"uow":"T1"}', b'{"uow":"T1","end":true}'] in [
        [record for record in shard if b"uow" in record] for shard in bench.by_shard()
    ], "a unit goes to one shard, in order"
    said = {record.getMessage(): record.kainite_fields for record in caplog.records if "kainite" in record.name}  # type: ignore[attr-defined]
    assert said["child stderr"]["line"] == "I am the-extractor"
    assert said["child stderr"]["child"] == "extractor"


def test_what_a_failed_run_left_without_its_end_is_reported_and_not_put(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SourceError):
        bench.once(bench.settings("sh", "-c", r"printf 'one\nhalf'; exit 1", extractorTries="1"))
    assert bench.records() == [b"one"]
    said = {record.getMessage(): record.kainite_fields for record in caplog.records if "kainite" in record.name}  # type: ignore[attr-defined]
    assert said["last message without its EOM not put"] == {"size": 4, "begins": "half"}


def test_many_messages_pass_in_order(bench: Any) -> None:
    assert bench.once(bench.settings("seq", "2000", extractSpread="record")) == 0
    assert sorted(map(int, bench.records())) == list(range(1, 2001))
    assert all(list(map(int, shard)) == sorted(map(int, shard)) for shard in bench.by_shard())


def test_messages_share_records_and_keep_their_order(bench: Any) -> None:
    keys = {"extractSpread": "record", "extractAggregation": "true"}
    assert bench.once(bench.settings("seq", "2000", **keys), aggregation_bytes=2048) == 0
    shards = [[body for record in shard for body in unpacked(record)] for shard in bench.by_shard()]
    assert sorted(int(body) for shard in shards for body in shard) == list(range(1, 2001))
    assert all(list(map(int, shard)) == sorted(map(int, shard)) for shard in shards)
    assert len(bench.records()) < 60


def test_a_message_waits_for_others_for_a_limited_time(bench: Any) -> None:
    script = f"cd {bench.folder}; echo one; until test -e go; do sleep 0.02; done; echo two"
    keys = {"extractAggregation": "true", "extractAggregationMillis": "50", "extractorIntervalMillis": ""}
    with bench.running(bench.settings("sh", "-c", script, **keys)) as process:
        deadline = time.monotonic() + LIMIT
        while bench.records() != [b"one"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        (bench.folder / "go").touch()
        assert process.wait(LIMIT) == 0
    assert sorted(bench.records()) == [b"one", b"two"]


def unpacked(record: bytes) -> list[bytes]:
    raw = RawRecord("1", "k", b64encode(record).decode())
    return [b64decode(user.data or "") for user in expand([raw])]


def test_more_than_is_held_waits_in_the_pipe_and_is_not_lost_when_the_program_ends(bench: Any) -> None:
    script = "for n in 1 2 3 4 5 6; do head -c 900000 /dev/zero | tr '\\0' $n; echo; done"
    assert bench.once(bench.settings("sh", "-c", script)) == 0
    assert sorted(record[:2] + str(len(record)).encode() for record in bench.records()) == [
        f"{n}{n}900000".encode() for n in range(1, 7)
    ]


def test_a_failure_is_tried_again_and_given_up_with_its_last_words(bench: Any) -> None:
    with pytest.raises(SourceError, match=r"given up after 3 failures in a row .* ended with status 7: no luck$"):
        bench.once(bench.settings("sh", "-c", "echo written; echo no luck >&2; exit 7"))
    assert bench.records() == [b"written"] * 3, "what a failed run wrote stays"


def test_a_source_that_is_away_is_waited_for_however_often_it_is(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    script = (
        f"cd {bench.folder}; echo x >> tries; test $(wc -l < tries) -ge 6 || {{ echo away >&2; exit 75; }}; echo one"
    )
    assert bench.once(bench.settings("sh", "-c", script, extractorTries="1")) == 0
    assert bench.records() == [b"one"]
    waited = [record.kainite_fields for record in caplog.records if record.getMessage() == "waiting"]  # type: ignore[attr-defined]
    assert len(waited) == 1
    assert str(waited[0]["cause"]).endswith("ended with status 75: away")


def test_a_success_makes_up_for_failures(bench: Any) -> None:
    script = f"cd {bench.folder}; echo x >> tries; test $(wc -l < tries) -ge 3"
    assert bench.once(bench.settings("sh", "-c", script)) == 0


def test_a_record_larger_than_kinesis_takes_ends_it_at_once(bench: Any) -> None:
    with pytest.raises(StreamError, match="takes 1048578 bytes: Kinesis takes 1 MiB"):
        bench.once(bench.settings("sh", "-c", "head -c 1048577 /dev/zero | tr '\\0' x; echo"))
    assert bench.records() == []


def test_runs_follow_each_other_until_sigterm_and_what_was_written_by_then_is_put(bench: Any) -> None:
    script = f"""cd {bench.folder}; echo run; test -e second || {{ touch second; exit 0; }}
    trap 'echo last words; exit 1' TERM; touch waiting; while :; do sleep 0.05; done"""
    with bench.running(bench.settings("sh", "-c", script)) as process:
        deadline = time.monotonic() + LIMIT
        while not (bench.folder / "waiting").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    assert sorted(bench.records()) == [b"last words", b"run", b"run"]

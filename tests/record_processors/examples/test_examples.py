"""All examples do the same: one table of records and deltas for every language and dialect, over real children."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kainite.base.markers import Batching
from kainite.new_processor.catalogue import EXAMPLES, JSON_LINES, MARKERS, SAMPLES, Example, find, folder
from kainite.settings import MarkersSettings
from kainite.uow.delta import parse_delta, parse_end
from support.example_processors import talking

ROOT = Path(__file__).parents[3]

CommandOf = Callable[[Example], tuple[str, ...]]

EXACT = ("c", "java", "perl")
"""Languages in which a number keeps all its digits, however many."""

OTHER_MARKS = {"python": b"\x1e<>", "javascript": b"\x1e<>", "perl": b"\x1e<>", "bash": b"\n"}
"""Languages whose example takes its markers from the environment, and an EOM that it takes."""

each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.language}-{one.dialect}")
each_in_json_lines = pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.dialect is JSON_LINES], ids=lambda one: one.language
)

BAD = (
    b"",
    b" ",
    b"no JSON",
    b"null",
    b"5",
    b'"uow"',
    b"[]",
    b'[{"uow":"T","table":"t","id":5}]',
    b"{}",
    b'{"uow":"T","table":"t"}',
    b'{"uow":"T","id":5}',
    b'{"table":"t","id":5}',
    b'{"uow":"T","end":true}',
    b'{"end":true,"count":3}',
    b'{"uow":"T","table":"t","id":5',
    b'{"uow":"T","table":"t","id":5,"note":"x\\',
    b'{"uow":"T","table":"t","id":5} {}',
    b'{"uow":"T","table":"t","id":5}}',
    b'{"uow":"T","table":"t","id":}',
    b'{"uow":"T","table":"t","id":nothing}',
    b'{"uow":"T","table":"t","id":5,"note":"\xff\xfe"}',
    b"\x00\x01\xff\n\x17\x06",
    b'{"uow":"T"\x00,"table":"t","id":5}',
)


def record(**values: Any) -> dict[str, Any]:
    return {"uow": "T-17", "table": "sales.order_line", "id": 5} | values


GOOD = (
    record(qty=2),
    record(id="a key", none=None, yes=True, no=False),
    record(id=-3, price=12.5, small=1e-7, large=9_007_199_254_740_991),
    record(note='two lines:\n"quoted", back\\slash, tab\t, \x00 and \x7f'),
    record(note="schlüssel ключ 鍵 \u2028\u2029 👩\u200d💻", ключ="k"),
    record(tags=["new", {"by": "ana", "at": [1, [2, {}], []]}, {}], text='}{][,:"'),
    record(end=False, count=3),
    record(end="true", count=3),
    record(end={"at": 1}, count=3),
    record(row=1, key=2, op=3),
    {"uow": "T-17", "end": True, "count": 8, "number": 17},
)


def delta_of(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the delta that a record has to become."""
    if values.get("end") is True:
        return values
    row = {name: value for name, value in values.items() if name not in ("uow", "table")}
    return {"uow": values["uow"], "table": values["table"], "op": "upsert", "key": {"id": values["id"]}, "row": row}


def payload(values: dict[str, Any]) -> bytes:
    """Returns a record's bytes: UTF-8, with as few escapes as possible."""
    return json.dumps(values, ensure_ascii=False).encode()


@each
async def test_a_shards_whole_life(example: Example, command_of: CommandOf) -> None:
    async with talking(command_of(example), example.dialect) as talk:
        await talk.process([payload(values) for values in GOOD])
        assert talk.deltas == [delta_of(values) for values in GOOD]
        assert len(talk.checkpoints) == 1
        talk.deltas.clear()
        await talk.process([payload(GOOD[0])])
        assert talk.deltas == [delta_of(GOOD[0])]
        assert len(talk.checkpoints) == 2
        await talk.perform(talk.child.dialect.shard_ended())
    assert len(talk.checkpoints) == 3
    assert talk.checkpoints[-1].sequence is None
    assert talk.rejected == []
    assert list(talk.child.stderr_tail) == []


@each
async def test_a_bad_record_is_reported_and_the_others_go_on(example: Example, command_of: CommandOf) -> None:
    good = payload(GOOD[0])
    async with talking(command_of(example), example.dialect) as talk:
        for bad in BAD:
            talk.rejected.clear()
            await talk.process([good, bad, good])
            assert talk.deltas == [delta_of(GOOD[0])] * 2, bad
            talk.deltas.clear()
            assert len(talk.rejected) == (example.dialect is MARKERS), bad
        assert len(talk.checkpoints) == len(BAD)
    if example.dialect is JSON_LINES:
        assert all("bad record 101" in line for line in talk.child.stderr_tail if line.strip())


@each
async def test_a_stop_in_peace(example: Example, command_of: CommandOf) -> None:
    async with talking(command_of(example), example.dialect) as talk:
        await talk.perform(talk.child.dialect.shutdown_requested() or b"")
        assert len(talk.checkpoints) == 1
        await talk.perform(talk.child.dialect.lease_lost())
        assert len(talk.checkpoints) == 1


@each_in_json_lines
async def test_a_refused_checkpoint_is_told_and_no_end(example: Example, command_of: CommandOf) -> None:
    async with talking(command_of(example), example.dialect) as talk:
        talk.refuse = "ThrottlingException"
        await talk.process([payload(GOOD[0])])
        await talk.process([payload(GOOD[0])])
        assert talk.deltas == [delta_of(GOOD[0])] * 2
    assert any("ThrottlingException" in line for line in talk.child.stderr_tail)


@each
async def test_a_large_record(example: Example, command_of: CommandOf) -> None:
    letter = "x" if example.language == "bash" else "é"  # jq 1.6 and long lines beyond ASCII: see the example
    values = record(note=letter * 150_000)
    async with talking(command_of(example), example.dialect) as talk:
        await talk.process([payload(values)])
        assert talk.deltas == [delta_of(values)]


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.language in EXACT], ids=lambda one: f"{one.language}-{one.dialect}"
)
async def test_numbers_keep_their_digits(example: Example, command_of: CommandOf) -> None:
    row = b'"id":123456789012345678901234567890,"price":12345678901234567890.123456789'
    async with talking(command_of(example), example.dialect) as talk:
        await talk.process([b'{"uow":"T","table":"t",' + row + b"}"])
        [line] = talk.lines
        assert json.loads(line, parse_float=Decimal)["deltas"][0]["row"] == json.loads(
            b"{" + row + b"}", parse_float=Decimal
        )


@pytest.mark.parametrize("language", OTHER_MARKS)
async def test_markers_come_from_the_environment(language: str, command_of: CommandOf) -> None:
    example = find(language, MARKERS)
    assert example is not None
    markers = MarkersSettings(eom=OTHER_MARKS[language], eop=b"\x1d")
    async with talking(command_of(example), MARKERS, markers) as talk:
        await talk.process([payload(GOOD[0]), b"", payload(GOOD[1])])
        assert talk.deltas == [delta_of(GOOD[0]), delta_of(GOOD[1])]
        assert len(talk.rejected) == 1


@pytest.mark.parametrize("batching", [Batching.WORKER, Batching.SUPERVISOR])
@pytest.mark.parametrize("size", [1, 4, 100])
async def test_python_takes_batches(batching: Batching, size: int, command_of: CommandOf) -> None:
    example = find("python", MARKERS)
    assert example is not None
    async with talking(command_of(example), MARKERS, MarkersSettings(batching=batching, batch_size=size)) as talk:
        for _ in range(2):
            await talk.process([payload(values) for values in GOOD])
        assert talk.deltas == [delta_of(values) for values in GOOD] * 2


def test_the_samples_are_records() -> None:
    lines = (folder() / SAMPLES).read_bytes().splitlines()

    assert [delta_of(values)["uow"] for values in map(json.loads, lines)] == ["T-17"] * len(lines)


def test_what_the_examples_emit_kainite_takes() -> None:
    *deltas, end = [delta_of(values) for values in GOOD]

    assert all(parse_delta(delta).table == "sales.order_line" for delta in deltas)
    assert parse_end(end).count == 8


@each
def test_an_example_is_a_page_and_says_how_to_run_it(example: Example) -> None:
    text = (folder() / example.language / example.source).read_text()

    assert len(text.splitlines()) <= 60
    assert f"executableName = {example.run}\n" in text
    assert all(command in text for command in example.prepare)
    assert ("childProtocol = markers" in text) is (example.dialect is MARKERS)


@pytest.mark.parametrize("page", ["docs/record-processors.md", "record_processors/examples/README.md"])
def test_the_documents_name_every_example(page: str) -> None:
    text = (ROOT / page).read_text()

    assert [
        one for one in EXAMPLES if f"`{one.language}`" not in text and f"{one.language}/{one.source}" not in text
    ] == []

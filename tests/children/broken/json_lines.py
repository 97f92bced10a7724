"""A child that keeps KCL's protocol but for one fault: ``json_lines.py FAULT``. Without a library: it starts fast."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

FAULT = sys.argv[1]
OUTPUT = open(1, "w", closefd=False)  # noqa: SIM115  # buffered, whatever the environment says
EMITTING = ("emits", "drops the last record", "loses sub-records", "marks its deltas")
first = ""
kept: list[dict[str, Any]] = []
calls = 0


def write(text: str) -> None:
    OUTPUT.write(text)
    if FAULT != "no flush":
        OUTPUT.flush()


def say(**message: Any) -> None:
    text = json.dumps(message, indent=1 if FAULT == "pretty-printed" else None)
    mark = "\ufeff" if FAULT == "byte-order mark" else ""
    write(mark + text + ("" if FAULT == "no line end" else "\n"))


def status(action: str) -> None:
    say(action="status", responseFor=action)


def checkpoint(sequence: str | None = None) -> str | None:
    match FAULT:
        case "speaks v0":
            say(action="checkpoint", checkpoint=sequence)
        case "one too high" if sequence is not None:
            say(action="checkpoint", sequenceNumber=str(int(sequence) + 1))
        case "rounded" if sequence is not None:
            say(action="checkpoint", sequenceNumber=str(int(float(sequence))))
        case "invented":
            say(action="checkpoint", sequenceNumber="17")
        case _:
            say(action="checkpoint", sequenceNumber=sequence, subSequenceNumber=None)
    if FAULT == "does not read the reply":
        return None
    error: str | None = json.loads(sys.stdin.readline())["error"]
    return error


def emit(record: dict[str, Any]) -> None:
    row = {"id": record["data"]} | ({"at": record["sequenceNumber"]} if FAULT == "marks its deltas" else {})
    if FAULT == "marks its deltas":
        row["call"] = str(calls)
    say(action="emit", deltas=[{"uow": "T-1", "table": "orders", "op": "insert", "row": row}])


def emit_all(records: list[dict[str, Any]]) -> None:
    """Emits a delta a record, but for what the fault loses."""
    global kept, calls
    calls += 1
    match FAULT:
        case "drops the last record":
            records, kept = [*kept, *records[:-1]], records[-1:]
        case "loses sub-records":
            records = [record for record in records if not record["subSequenceNumber"]]
    for record in records:
        emit(record)


def process(records: list[dict[str, Any]]) -> None:
    global first
    first = records[0]["sequenceNumber"]
    if FAULT in EMITTING:
        emit_all(records)
    match FAULT:
        case "dies":
            print("no such table: orders", file=sys.stderr)
            sys.exit(3)
        case "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hangs":
            hang()
        case "emits nonsense":
            say(action="emit", deltas=[{"uow": "T-1", "table": "orders", "op": "replace", "key": {"id": 1}}])
        case "prints junk":
            write(f"got {len(records)} records\n")
        case "cannot take odd keys":
            for record in records:
                record["partitionKey"].encode("ascii")
        case "cannot take much" if sum(len(record["data"]) for record in records) > 200_000:
            sys.exit("too much")
        case "closes its output":
            os.close(1)
            hang()
    last = records[-1]["sequenceNumber"] if FAULT in ("one too high", "rounded") else None
    while checkpoint(last) and FAULT == "asks for ever":
        pass


def hang() -> None:
    while True:
        signal.pause()


def answer(message: dict[str, Any]) -> None:
    action = message["action"]
    match action:
        case "initialize" if FAULT == "emits too early":
            say(action="emit", deltas=[])
        case "processRecords":
            process(message["records"])
        case "shardEnded" if FAULT == "checkpoints a record at the end":
            checkpoint(first)
        case "shardEnded" if FAULT != "no checkpoint at the end":
            checkpoint()
        case "leaseLost" if FAULT == "checkpoints a lost lease":
            checkpoint()
        case "shutdownRequested" if FAULT != "no checkpoint before a shutdown":
            checkpoint()
    if FAULT == "answers twice":
        write(2 * (json.dumps({"action": "status", "responseFor": action}) + "\n"))
    else:
        status("process" if FAULT == "wrong action" and action == "processRecords" else action)


def lines() -> Iterator[str]:
    if FAULT != "reads in blocks":
        yield from sys.stdin
        return
    rest = b""
    while block := sys.stdin.buffer.read(65536):
        *whole, rest = (rest + block).split(b"\n")
        yield from (line.decode() for line in whole)


if FAULT == "answers before it reads":
    for expected in ("initialize", "processRecords", "processRecords", "shardEnded"):
        status(expected)
for line in lines():
    if FAULT != "answers before it reads":
        answer(json.loads(line))
if FAULT == "ignores the end of its input":
    hang()
if FAULT == "ends badly":
    sys.exit(5)

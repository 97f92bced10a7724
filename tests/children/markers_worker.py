"""A worker that speaks markers, written without Kainite's code; see tests/children/README.md.

python markers_worker.py FILE [KEY=VALUE …]

Each request is a line of JSON in FILE. It answers a message M with the message M, but:

    delta:NAME   a delta and the end of unit NAME      none          nothing
    bad:CAUSE    a bad message report                   junk          `{"uow":"T-junk"`
    die, hang    once if FILE.once is not there yet     die always    every time
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def marker(name: str) -> bytes:
    return os.environ[name].encode().decode("unicode_escape").encode("latin-1")


EOM, EOP, EOB, BNC = (marker(f"KAINITE_{name}") for name in ("EOM", "EOP", "EOB", "BNC"))
BATCHING, SIZE = os.environ["KAINITE_BATCHING"], int(os.environ["KAINITE_BATCH_SIZE"])
FILE = Path(sys.argv[1])
OPTIONS = dict(argument.split("=", 1) for argument in sys.argv[2:])


def note(**fields: object) -> None:
    with FILE.open("a") as notes:
        notes.write(json.dumps(fields) + "\n")


def say(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def requests() -> Iterator[tuple[bytes, bytes]]:
    """Yields messages and EOBs as they come."""
    rest = b""
    while chunk := os.read(0, 65536):
        rest += chunk
        while found := min(((place, mark) for mark in (EOM, EOB) if (place := rest.find(mark)) >= 0), default=None):
            place, mark = found
            yield mark, rest[:place]
            rest = rest[place + len(mark) :]
    note(end=True)


def misbehave(message: str) -> None:
    once = FILE.with_suffix(".once")
    if message != "die always" and once.exists():
        return
    once.touch()
    say(OPTIONS.get("last", "").encode())
    if message == "hang":
        time.sleep(600)
    os.kill(os.getpid(), signal.SIGKILL)


def answer(message: str) -> list[str]:
    kind, _, name = message.partition(":")
    match kind:
        case "delta":
            key = {"id": 1}
            delta = {"uow": name, "table": "t", "op": "upsert", "key": key, "row": key}
            return [json.dumps(delta), json.dumps({"uow": name, "end": True, "count": 1})]
        case "bad":
            return [json.dumps({"bad": name})]
        case "none":
            return []
        case "junk":
            return ['{"uow":"T-junk"']
        case "die" | "hang" | "die always":
            misbehave(message)
    return [message]


def process(messages: list[bytes]) -> None:
    note(messages=[message.decode() for message in messages])
    for message in messages:
        for result in answer(message.decode()):
            say(result.encode() + EOM)
    if OPTIONS.get("flush") != "never":
        say(EOP)


note(shard=os.environ["KCL_SHARD_ID"], arguments=OPTIONS)
batch: list[bytes] = []
for mark, payload in requests():
    if mark == EOM:
        batch.append(payload)
        if BATCHING == "worker" and len(batch) < SIZE:
            say(BNC)
    if mark == EOB or BATCHING == "single" or (BATCHING == "worker" and len(batch) == SIZE):
        process(batch)
        batch = []

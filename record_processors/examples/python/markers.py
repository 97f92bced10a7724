#!/usr/bin/env python3
"""A record processor in Python, without a library: JSON records in, deltas out. It takes all kinds of batches.

Run:  executableName = python3 markers.py
      childProtocol = markers
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any


def mark(variable: str, default: str) -> bytes:
    """Returns a marker from the environment, where it is spelled with escapes: \\n, \\0, \\x17."""
    return os.environ.get(variable, default).encode().decode("unicode_escape").encode("latin-1")


EOM, EOP = mark("KAINITE_EOM", "\\n"), mark("KAINITE_EOP", "\\0")
EOB, BNC = mark("KAINITE_EOB", "\\x17"), mark("KAINITE_BNC", "\\x06")
BATCHING, SIZE = os.environ.get("KAINITE_BATCHING", "single"), int(os.environ.get("KAINITE_BATCH_SIZE") or 1)


def delta(message: bytes) -> Any:
    """Returns the delta of a record; the end of a unit of work stays as it is."""
    record = json.loads(message)
    if record.get("end") is True:
        return {"uow": record["uow"], "count": record["count"], **record}
    row = {name: value for name, value in record.items() if name not in ("uow", "table")}
    return {"uow": record["uow"], "table": record["table"], "op": "upsert", "key": {"id": record["id"]}, "row": row}


def answer(message: bytes) -> bytes:
    try:
        return json.dumps(delta(message), allow_nan=False).encode() + EOM
    except Exception as problem:
        return json.dumps({"bad": f"{type(problem).__name__}: {problem}"}).encode() + EOM


def pieces() -> Iterator[tuple[bytes, bytes]]:
    """Yields each piece of the input with the marker behind it."""
    held, marks = bytearray(), re.compile(re.escape(EOM) + b"|" + re.escape(EOB))
    while data := os.read(0, 1 << 16):
        held += data
        while found := marks.search(held):
            yield bytes(held[: found.start()]), found[0]
            del held[: found.end()]


batch: list[bytes] = []
for message, ended_by in pieces():
    if ended_by == EOM:
        batch.append(message)
    if ended_by == EOB or BATCHING == "single" or (BATCHING == "worker" and len(batch) == SIZE):
        os.write(1, b"".join(map(answer, batch)) + EOP)
        batch.clear()
    elif BATCHING == "worker":
        os.write(1, BNC)

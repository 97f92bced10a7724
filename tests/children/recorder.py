"""A child that writes down what it was given and when: ``recorder.py FOLDER WORKER [emit]``.

It appends to FOLDER/WORKER-PID, before each checkpoint and in one write, a line of JSON: shard, worker, pid,
when the call came and when it was done (``time.monotonic``, which all processes of a host share), and the
records' payloads, which are numbers. With ``emit`` each record is a unit of work of its own: number 7 is ``T-7``.
"""

import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER, WORKER, EMITS = Path(sys.argv[1]), sys.argv[2], "emit" in sys.argv[3:]
NOTES = os.open(FOLDER / f"{WORKER}-{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def read() -> Any:
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit()


def write(message: dict[str, Any]) -> None:
    sys.stdout.write("\n" + json.dumps(message) + "\n")
    sys.stdout.flush()


def checkpoint(sequence: str | None, sub: int | None) -> None:
    write({"action": "checkpoint", "sequenceNumber": sequence, "subSequenceNumber": sub})
    read()


def note(shard: str, began: float, numbers: list[int]) -> None:
    said = {"shard": shard, "worker": WORKER, "pid": os.getpid(), "began": began, "ended": time.monotonic(),
            "numbers": numbers}  # fmt: skip
    os.write(NOTES, json.dumps(said).encode() + b"\n")


def emit(number: int) -> None:
    unit, row = f"T-{number}", {"id": number}
    delta = {"uow": unit, "table": "t", "op": "upsert", "key": row, "row": row}
    write({"action": "emit", "deltas": [delta, {"uow": unit, "end": True, "count": 1}]})


def main() -> None:
    shard = ""
    while True:
        message, began = read(), time.monotonic()
        match message["action"]:
            case "initialize":
                shard = message["shardId"]
            case "processRecords" if message["records"]:
                numbers = [int(base64.b64decode(record["data"])) for record in message["records"]]
                note(shard, began, numbers)
                for number in numbers if EMITS else ():
                    emit(number)
                last = message["records"][-1]
                checkpoint(last["sequenceNumber"], last["subSequenceNumber"])
            case "shardEnded":
                checkpoint(None, None)
        write({"action": "status", "responseFor": message["action"]})


main()

"""A loader, batched as it is told, that gets into trouble at one unit.

    trouble_loader.py DATABASE TROUBLE TRANSACTION_ID [forgetful]

Units become rows of the table ``loaded``, which is its account of them too; a forgetful loader keeps none.
Trouble comes once, but for ``refuse``. The table ``runs`` has the process id of each that was started.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from typing import Any, TypeAlias

Batch: TypeAlias = list[dict[str, Any]]

DATABASE, TROUBLE, VICTIM = sys.argv[1], sys.argv[2], int(sys.argv[3])
FORGETFUL = "forgetful" in sys.argv
EOM, EOP, EOB, BNC = (
    os.environ[f"KAINITE_{name}"].encode().decode("unicode_escape").encode() for name in ("EOM", "EOP", "EOB", "BNC")
)
BATCHING = os.environ["KAINITE_BATCHING"]
BATCH_SIZE = int(os.environ["KAINITE_BATCH_SIZE"])

db = sqlite3.connect(DATABASE, timeout=30, isolation_level=None)
db.execute("CREATE TABLE IF NOT EXISTS loaded (transaction_id, uow, deltas)")
db.execute("CREATE TABLE IF NOT EXISTS troubles (what)")
db.execute("CREATE TABLE IF NOT EXISTS runs (pid)")
db.execute("INSERT INTO runs VALUES (?)", [os.getpid()])


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def items() -> Iterator[bytes]:
    """Yields each message, and EOB where a batch ends."""
    held = b""
    while data := os.read(0, 2**20):
        *parts, held = re.split(b"(" + re.escape(EOM) + b"|" + re.escape(EOB) + b")", held + data)
        yield from (part if end == EOM else EOB for part, end in zip(parts[::2], parts[1::2], strict=True))


def hit(batch: Batch) -> bool:
    return any(asked["transactionId"] == VICTIM for asked in batch)


def comes(what: str, batch: Batch) -> bool:
    """Returns whether this unit gets into this trouble now: it did not before."""
    if what != TROUBLE or not hit(batch) or db.execute("SELECT 1 FROM troubles").fetchone():
        return False
    db.execute("INSERT INTO troubles VALUES (?)", [what])
    return True


def known(tid: int) -> bool:
    return not FORGETFUL and db.execute("SELECT 1 FROM loaded WHERE transaction_id = ?", [tid]).fetchone() is not None


def load(batch: Batch) -> object:
    """Returns the answer to a batch of units, which are loaded in one transaction."""
    if comes("retry", batch):
        return {"retry": "come again"}
    if comes("junk", batch):
        return "what?"
    if TROUBLE == "refuse" and hit(batch):
        return {"bad": "not this one"}
    if comes("noise", batch):
        sys.stderr.write(("noise " * 1000 + "\n") * 500)
    sudden, late, hang = (comes(what, batch) for what in ("die before commit", "die after commit", "hang"))
    db.execute("BEGIN IMMEDIATE")
    for asked in batch:
        if not known(asked["transactionId"]):
            row = [asked["transactionId"], asked["uow"], json.dumps(asked["deltas"])]
            db.execute("INSERT INTO loaded VALUES (?, ?, ?)", row)
    while hang:
        time.sleep(60)
    if sudden:
        os.kill(os.getpid(), signal.SIGKILL)
    db.execute("COMMIT")
    if late:
        os.kill(os.getpid(), signal.SIGKILL)
    return None


def answer(messages: list[bytes]) -> None:
    batch: Batch = [json.loads(message) for message in messages]
    said: object = None
    end = EOP
    if batch and batch[0]["action"] == "load":
        said = load(batch)
        end = EOP + EOP if comes("chatter", batch) else EOP
    elif batch and batch[0]["action"] == "applied":
        said = {"applied": [tid for tid in batch[0]["transactionIds"] if known(tid)]}
    write((json.dumps(said).encode() + EOM if said else b"") + end)


def main() -> None:
    messages: list[bytes] = []
    for item in items():
        if item != EOB:
            messages.append(item)
            if BATCHING == "supervisor":
                continue
            if BATCHING == "worker" and len(messages) < BATCH_SIZE:
                write(BNC)
                continue
        answer(messages)
        messages = []


main()

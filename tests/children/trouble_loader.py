"""A loader, batched as it is told, that gets into trouble at one unit.

    trouble_loader.py DATABASE TROUBLE TRANSACTION_ID [forgetful]

Units become rows of the table ``loaded``, which is its account of them too; a forgetful loader keeps none.
Trouble comes once, but for ``refuse``. The table ``runs`` has the process id of each that was started.
"""

import json
import os
import re
import signal
import sqlite3
import sys
import time

DATABASE = sys.argv[1]
TROUBLE, VICTIM = sys.argv[2], int(sys.argv[3])
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


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def items():
    """Each message, and EOB where a batch ends."""
    held = b""
    while data := os.read(0, 2**20):
        *parts, held = re.split(b"(" + re.escape(EOM) + b"|" + re.escape(EOB) + b")", held + data)
        yield from (part if end == EOM else EOB for part, end in zip(parts[::2], parts[1::2], strict=True))


def first_time(what):
    if db.execute("SELECT 1 FROM troubles").fetchone():
        return False
    return db.execute("INSERT INTO troubles VALUES (?)", [what]) is not None


def comes(what, batch):
    """Whether this is the trouble, and the unit, and it did not come before."""
    return what == TROUBLE and any(asked["transactionId"] == VICTIM for asked in batch) and first_time(what)


def known(tid):
    return not FORGETFUL and db.execute("SELECT 1 FROM loaded WHERE transaction_id = ?", [tid]).fetchone()


def load(batch):
    """The answer to a batch of units, in one transaction."""
    if comes("retry", batch):
        return {"retry": "come again"}
    if comes("junk", batch):
        return "what?"
    if TROUBLE == "refuse" and any(asked["transactionId"] == VICTIM for asked in batch):
        return {"bad": "not this one"}
    sudden, late = comes("die before commit", batch), comes("die after commit", batch)
    hang, noise = comes("hang", batch), comes("noise", batch)
    db.execute("BEGIN IMMEDIATE")
    for asked in batch:
        if not known(asked["transactionId"]):
            row = [asked["transactionId"], asked["uow"], json.dumps(asked["deltas"])]
            db.execute("INSERT INTO loaded VALUES (?, ?, ?)", row)
    while hang:
        time.sleep(60)
    if noise:
        sys.stderr.write(("noise " * 1000 + "\n") * 500)
    if sudden:
        os.kill(os.getpid(), signal.SIGKILL)
    db.execute("COMMIT")
    if late:
        os.kill(os.getpid(), signal.SIGKILL)
    return None


def answer(batch):
    requests = [json.loads(message) for message in batch]
    said, end = None, EOP
    if requests and requests[0]["action"] == "load":
        said = load(requests)
        end = EOP + EOP if comes("chatter", requests) else EOP
    elif requests and requests[0]["action"] == "applied":
        said = {"applied": [tid for tid in requests[0]["transactionIds"] if known(tid)]}
    write((json.dumps(said).encode() + EOM if said else b"") + end)


def main():
    batch = []
    for item in items():
        if item != EOB:
            batch.append(item)
            whole = BATCHING == "single" or (BATCHING == "worker" and len(batch) == BATCH_SIZE)
            if not whole:
                if BATCHING == "worker":
                    write(BNC)
                continue
        answer(batch)
        batch = []


main()

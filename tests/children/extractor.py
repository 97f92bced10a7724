"""A cyclic extractor that gives its offset to Kainite, as tests want it.

``extractor.py UNITS FOLDER [FAULT]``: gives the units T0, T1 … (two deltas and the end each), three a cycle. With the
variable AHEAD set it may be asked for more before an answer is on the stream. With a fault, the first time that it
gives T4, after the first record of that unit:

``die``      it kills itself
``hang``     it says nothing any more, and does not end when its input does
``junk``     it ends its answer there, and goes on writing although nothing is asked of it
``offset``   it gives no offset

``FOLDER/fault`` says that the fault has been; ``FOLDER/pids`` has a line for each process.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

UNITS, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
FAULT = sys.argv[3] if len(sys.argv) > 3 else ""


def say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


def fault() -> None:
    (FOLDER / "fault").touch()
    sys.stdout.flush()
    if FAULT == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    while FAULT == "hang":
        time.sleep(60)
    if FAULT == "junk":
        sys.stdout.write("\0")


def answer(start: int) -> None:
    end = min(start + 3, UNITS)
    faulty = bool(FAULT) and start <= 4 < end and not (FOLDER / "fault").exists()
    for number in range(start, end):
        say({"uow": f"T{number}", "ordinal": 0})
        if faulty and number == 4:
            fault()
        say({"uow": f"T{number}", "ordinal": 1})
        say({"uow": f"T{number}", "end": True, "count": 2})
    if end > start and not (faulty and FAULT == "offset"):
        say({"offset": end, "ahead": True} if "AHEAD" in os.environ else {"offset": end})
    sys.stdout.write("\0")
    sys.stdout.flush()


with (FOLDER / "pids").open("a") as pids:
    pids.write(f"{os.getpid()}\n")
for line in sys.stdin:
    request = json.loads(line)
    stored = f", stored {request['stored']}" if "stored" in request else ""
    print(f"asked from {request['start']}{stored}", file=sys.stderr)
    answer(request["start"] or 0)

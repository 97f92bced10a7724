"""A child that does what it is told, to the byte: for everything that no well-behaved library would do.

``scripted.py SCRIPT [TRANSCRIPT]``: SCRIPT is a JSON object from an action to steps; ``eof`` is done when
the input has ended. An action without steps is answered with its status. Every line that was read is
appended to the file TRANSCRIPT.

Steps: ``status``, ``read``, ``hang``, ``die``, ``checkpoint first``, ``checkpoint last``, or one of
``["write", text]``, ``["bytes", hex]``, ``["flood", count, text]``, ``["stderr", text]``,
``["exit", status]``, ``["close", fd]``, ``["ignore", signal]``, ``["note", signal, FILE]``
(notes its name in FILE, and exits), ``["spawn", FILE]``,
``["die once", FILE]``, ``["wait for", FILE]``, ``["emit", {…}]``.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SCRIPT = json.loads(sys.argv[1])
TRANSCRIPT = sys.argv[2] if len(sys.argv) > 2 else os.devnull


def read() -> str:
    line = sys.stdin.buffer.readline()
    with Path(TRANSCRIPT).open("ab") as transcript:
        transcript.write(line)
    return line.decode()


def write(text: str) -> None:
    write_all(text.encode())


def write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def checkpoint(sequence: str) -> None:
    write(json.dumps({"action": "checkpoint", "sequenceNumber": sequence, "subSequenceNumber": None}) + "\n")
    read()


def hang() -> None:
    while True:
        signal.pause()


def note_and_exit(number: int, path: Path) -> None:
    with path.open("a") as file:
        file.write(signal.Signals(number).name + "\n")
    os._exit(0)


def perform(step: Any, message: dict[str, Any]) -> None:
    match step:
        case "status":
            write("\n" + json.dumps({"action": "status", "responseFor": message["action"]}) + "\n")
        case "read":
            read()
        case "hang":
            hang()
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case ["die once", path]:
            if not Path(path).exists():
                Path(path).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        case ["wait for", path]:
            while not Path(path).exists():
                time.sleep(0.01)
        case ["write", text]:
            write(text)
        case "checkpoint last":
            checkpoint(message["records"][-1]["sequenceNumber"])
        case "checkpoint first":
            checkpoint(message["records"][0]["sequenceNumber"])
        case ["emit", fields]:
            write(json.dumps({"action": "emit", **fields}) + "\n")
        case ["bytes", data]:
            write_all(bytes.fromhex(data))
        case ["flood", count, text]:
            write_all(text.encode() * count)
        case ["stderr", text]:
            os.write(2, text.encode())
        case ["exit", status]:
            os._exit(status)
        case ["close", fd]:
            os.close(fd)
        case ["ignore", number]:
            signal.signal(number, signal.SIG_IGN)
        case ["note", number, path]:
            signal.signal(number, lambda number, _: note_and_exit(number, Path(path)))
        case ["spawn", path]:
            Path(path).write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
        case _:
            raise ValueError(step)


def main() -> None:
    while line := read():
        message = json.loads(line)
        for step in SCRIPT.get(message["action"], ["status"]):
            perform(step, message)
    for step in SCRIPT.get("eof", []):
        perform(step, {"action": "eof"})


main()

"""A child that keeps the markers dialect but for one fault: ``markers.py FAULT``. It takes all kinds of batches.

Each message that is a JSON object is answered with a delta, any other with a report.
"""

import json
import os
import signal
import sys

FAULT = sys.argv[1]
OUTPUT = open(1, "wb", closefd=False)  # noqa: SIM115  # buffered, whatever the environment says
EOM, EOP, EOB, BNC = b"\n", b"\0", b"\x17", b"\x06"
late: list[bytes] = []
BATCHING, SIZE = os.environ["KAINITE_BATCHING"], int(os.environ["KAINITE_BATCH_SIZE"])


def write(data: bytes) -> None:
    OUTPUT.write(data)
    if FAULT != "no flush":
        OUTPUT.flush()


def hang() -> None:
    while True:
        signal.pause()


def answer_to(message: bytes) -> bytes:
    try:
        found = json.loads(message)
        if not isinstance(found, dict):
            raise ValueError("no object")
    except ValueError as error:
        return b"" if FAULT == "drops bad messages" else json.dumps({"bad": str(error)}).encode() + EOM
    indent = 1 if FAULT == "EOM in a payload" else None
    delta = {"uow": "T-1", "table": "orders", "op": "insert", "row": found}
    return json.dumps(delta, indent=indent).encode() + EOM


def reversed_text(message: bytes) -> bytes:
    """Returns what is no delta, as a stage in front of another one may."""
    return message[::-1] + EOM


def done(batch: list[bytes]) -> None:
    match FAULT:
        case "silent to an empty batch" if not batch:
            pass
        case "silent to a bad message" if any(not message.startswith(b"{") for message in batch):
            pass
        case "dies of an empty message" if b"" in batch:
            sys.exit(4)
        case "one late":
            write((late[0] if late else b"") + EOP)
            late[:] = [b"".join(map(answer_to, batch))]
        case "drops partial batches" if len(batch) < SIZE:
            write(EOP)
        case "reverses":
            write(b"".join(map(reversed_text, batch)) + EOP)
        case "BNC with the answer" if len(batch) == SIZE:
            write(BNC + b"".join(map(answer_to, batch)) + EOP)
        case "dies":
            print("no such table: orders", file=sys.stderr)
            sys.exit(3)
        case "hangs":
            hang()
        case "no EOP":
            write(b"".join(map(answer_to, batch)))
        case "EOP first":
            write(EOP + b"".join(map(answer_to, batch)))
        case "EOP for each message":
            write(b"".join(answer_to(message) + EOP for message in batch))
        case _:
            write(b"".join(map(answer_to, batch)) + EOP)
    batch.clear()


def byte() -> bytes:
    return sys.stdin.buffer.read(1)


def main() -> None:
    batch: list[bytes] = []
    message = bytearray()
    while next_byte := byte():
        if next_byte == EOM and not (FAULT == "EOB needs EOM" and message == EOB):
            batch.append(bytes(message))
            message.clear()
            if BATCHING == "single" or (BATCHING == "worker" and len(batch) == SIZE and FAULT != "extra BNC"):
                done(batch)
            elif BATCHING == "worker":
                write(BNC)
        elif next_byte == EOB and FAULT not in ("EOB needs EOM", "ignores EOB"):
            done(batch)
        elif next_byte == EOM:
            message.clear()
            done(batch)
        else:
            message += next_byte


if FAULT == "start banner":
    write(b"transform 1.0 ready\n")
if FAULT == "byte-order mark":
    write(b"\xef\xbb\xbf")
if FAULT == "answers before it reads":
    write(b'{"uow":"T"}' + EOM + EOP)
main()
if FAULT == "ignores the end of its input":
    hang()

"""A duty's program: says what it is told to say, lives as long as it is told, and writes down when it ran.

``duty.py FILE [--ready TEXT] [--die STATUS] [--deaf] [--flood]`` appends ``began PID`` and, when it is told to end,
``ended PID`` to FILE; while it runs it appends ``runs PID TIME`` every few milliseconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--ready")
    parser.add_argument("--die", type=int)
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--flood", action="store_true")
    given = parser.parse_args()

    def say(what: str) -> None:
        with given.file.open("a") as out:
            out.write(f"{what} {os.getpid()} {time.clock_gettime(time.CLOCK_BOOTTIME)}\n")

    def end(*_: object) -> None:
        say("ended")
        sys.exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if given.deaf else end)
    say("began")
    if given.flood:
        for number in range(20_000):
            print(f"{number} " + "x" * 100, file=sys.stderr)
    if given.die is not None:
        print("why it died", file=sys.stderr, flush=True)
        return int(given.die)
    if given.ready:
        print(given.ready, flush=True)
    while True:
        say("runs")
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())

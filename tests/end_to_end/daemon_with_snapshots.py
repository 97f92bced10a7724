"""``kainite run`` that takes a snapshot of the log after few entries: ``daemon_with_snapshots.py ENTRIES SETTINGS``."""

from __future__ import annotations

import sys
from dataclasses import replace

from kainite.settings import load
from kainite.worker.supervisor import run


def main(entries: str, path: str) -> None:
    settings = load(path)
    run(replace(settings, log=replace(settings.log, snapshot_entries=int(entries))))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A record processor that only counts and answers, as cheaply as Python can.

``child.py RECORDS FOLDER``: after RECORDS records it writes FOLDER/<shard>.json. A line is
complete when a read ends with a line end, because the daemon sends nothing before it has the answer.
"""

import json
import os
import sys
import time
from pathlib import Path

RECORD = b'"action":"record"'
READ = 2**20


def main() -> None:
    expected, folder = int(sys.argv[1]), Path(sys.argv[2])
    count, first = 0, 0.0
    while head := os.read(0, READ):
        began = time.monotonic()
        while head.count(b'"', 0, 100) < 4:  # Java writes a line in pieces
            head += os.read(0, READ)
        records, last = head.count(RECORD), head
        carried = head[-len(RECORD) :]
        while not last.endswith(b"\n"):
            last = os.read(0, READ)
            # A record's mark may lie across two reads.
            records += last.count(RECORD) + (carried + last[: len(RECORD) - 1]).count(RECORD, 1)
            carried = (carried + last)[-len(RECORD) :]
        action = head.split(b'"', 4)[3].decode()
        if action == "processRecords":
            first = first or began
            count += records
        if count >= expected and action == "processRecords":
            cpu = os.times()
            note = {"first": first, "last": time.monotonic(), "records": count, "cpu": cpu.user + cpu.system}
            # Java's daemon sets no shard in the environment.
            partial = folder / f"{os.environ.get('KCL_SHARD_ID', f'shardId-{os.getpid()}')}.part"
            partial.write_text(json.dumps(note))
            partial.rename(partial.with_suffix(".json"))
        os.write(1, b'{"action":"status","responseFor":"%s"}\n' % action.encode())


main()

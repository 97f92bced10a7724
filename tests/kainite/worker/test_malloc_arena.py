from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from kainite.worker.malloc_arena import share_one_arena
if {tuned}:
    share_one_arena()
turns = threading.Barrier(8)
def work():
    turns.wait()  # all threads live at a time, so that each could have an arena
    kept = [bytearray(100_000) for _ in range(20)]
    turns.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
heaps = sum("rw-p 00000000 00:00 0" in line and "[" not in line for line in open("/proc/self/maps"))
print(heaps)
"""


def heaps(*, tuned: bool) -> int:
    program = PROGRAM.format(tuned=tuned)
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def test_threads_share_one_arena() -> None:
    assert heaps(tuned=True) < heaps(tuned=False)

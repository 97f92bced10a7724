from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from kainite.memory import give_back_large_blocks
if {tuned}:
    give_back_large_blocks()
bytearray(4_000_000)  # freed at once: from here on glibc by itself takes such blocks from the heap
large, small = [], []
for _ in range(30):
    large.append(bytearray(3_000_000))
    small.append(bytearray(100_000))
del large
print(int(open("/proc/self/status").read().partition("VmRSS:")[2].split()[0]))
"""


def resident_kb(*, tuned: bool) -> int:
    program = PROGRAM.format(tuned=tuned)
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def test_freed_large_blocks_leave_no_holes_between_small_ones() -> None:
    assert resident_kb(tuned=True) < resident_kb(tuned=False) - 50_000

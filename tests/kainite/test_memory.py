from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from kainite.memory import give_back_large_blocks
if {tuned}:
    give_back_large_blocks()
def work(): 
    for _ in range(20):
        blocks = [bytearray(3_000_000 + 1000 * n) for n in range(4)]
        small = [bytes(5000) for _ in range(50)]
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(int(open("/proc/self/status").read().partition("VmRSS:")[2].split()[0]))
"""


def resident_kb(*, tuned: bool) -> int:
    program = PROGRAM.format(tuned=tuned)
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def test_freed_large_blocks_go_back_to_the_system() -> None:
    assert resident_kb(tuned=True) < min(resident_kb(tuned=False), 30_000)

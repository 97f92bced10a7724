"""The limit of open files is raised to what may be needed, and a lower one is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from kainite.base.logs import configure
from kainite.base.file_limit import provide
configure()
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(provide(500), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "in_force", "told"),
    [(128, 1_000, 500, False), (128, 300, 300, True), (800, 1_000, 800, False), (500, 500, 500, False)],
)
def test_the_limit_is_raised_as_far_as_the_system_allows(soft: int, hard: int, in_force: int, told: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(soft), str(hard)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(in_force), str(in_force), str(hard)]
    assert ("allowed=300 needed=500" in done.stderr) == told

"""The rule that CI skips nothing, on a run of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RULE = Path(__file__).parents[2] / "conftest.py"
TESTS = {
    "call": "import pytest\ndef test_it():\n    pytest.skip('no server')\n",
    "mark": "import pytest\n@pytest.mark.skip(reason='no server')\ndef test_it():\n    pass\n",
    "module": "import pytest\npytest.skip('no server', allow_module_level=True)\n",
}


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed, 1 passed, 2 errors"), ("", "1 passed, 3 skipped")])
def test_a_skip_fails_in_ci_and_only_there(tmp_path: Path, ci: str, outcome: str) -> None:
    shutil.copy(RULE, tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for kind, test in TESTS.items():
        (tmp_path / f"test_{kind}.py").write_text(test)
    (tmp_path / "test_passing.py").write_text("def test_it():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--continue-on-collection-errors", str(tmp_path)]
    env = {**os.environ, "CI": ci}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    assert outcome in ended.stdout
    assert ended.stdout.count("no server (in CI nothing may be skipped)") >= (len(TESTS) if ci else 0)
    assert (ended.returncode == 0) == (not ci)

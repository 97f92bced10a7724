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


@pytest.mark.parametrize("kind", TESTS)
@pytest.mark.parametrize(("ci", "passes"), [("true", False), ("", True)])
def test_a_skip_fails_in_ci_and_only_there(tmp_path: Path, kind: str, ci: str, passes: bool) -> None:
    shutil.copy(RULE, tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_skipping.py").write_text(TESTS[kind])
    (tmp_path / "test_passing.py").write_text("def test_it():\n    pass\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", str(tmp_path)],
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode == 0) == passes, ended.stdout
    assert ("no server (in CI nothing may be skipped)" in ended.stdout) != passes

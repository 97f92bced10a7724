"""The systemd units: what systemd itself says of them, offline, and what makes a service come back after any outage."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from package.conftest import ROOT

UNITS = sorted((ROOT / "packaging" / "systemd").glob("*.service"))
LIMIT_OF_EXPOSURE = 3.0

each = pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)


def analysed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs systemd-analyze; where systemd is missing the test is skipped, which fails in CI."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing; on Debian or Ubuntu: apt-get install systemd")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_there_is_a_unit_for_each_long_running_command() -> None:
    assert {unit.stem for unit in UNITS} == {"kainite", "kainite-apply", "kainite-extract"}


@each
def test_its_exposure_is_low(unit: Path) -> None:
    ran = analysed("security", "--offline=true", "--no-pager", str(unit))

    found = re.search(r"Overall exposure level for \S+: ([\d.]+) ", ran.stdout)
    assert found is not None, ran.stdout + ran.stderr
    assert float(found[1]) <= LIMIT_OF_EXPOSURE, ran.stdout


@each
@pytest.mark.xdist_group("package")
def test_systemd_understands_each_line(unit: Path, bare: Path, tmp_path: Path) -> None:
    # verify looks for the program, so it gets one that is there.
    installed = str(bare.parent)
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace("/opt/kainite", installed))

    ran = analysed("verify", "--man=no", str(copy))

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@each
def test_no_outage_makes_systemd_give_up(unit: Path) -> None:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[method-assign,assignment]
    parsed.read_string(unit.read_text(encoding="utf-8"))

    assert parsed["Unit"]["StartLimitIntervalSec"] == "0"
    assert (parsed["Service"]["Restart"], parsed["Service"]["RestartSec"]) == ("always", "5")
    assert parsed["Service"]["TimeoutStartSec"] == "infinity"


@pytest.mark.xdist_group("package")
def test_they_come_with_the_wheel(bare: Path) -> None:
    folder = bare.parent / "share" / "kainite" / "systemd"

    assert {path.name: path.read_text() for path in folder.iterdir()} == {path.name: path.read_text() for path in UNITS}

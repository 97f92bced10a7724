"""Looks the packages of ``hashes.txt`` up among known holes, with pip-audit: ``make audit``.

pip-audit counts a package that its index of advisories does not know as one without holes. Behind a mirror of PyPI
that has no advisories this is so for all of them. So one package that surely is in the index is looked up first. Where
it is not found nothing was audited, which is said loudly; with ``--strict`` it is an error, too. Exit status: 1 for a
known hole, and with ``--strict`` for an audit that did not take place.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PROBE = "urllib3==2.3.0"
"""A version with known holes: CVE-2025-66418 and others."""


def audited(requirements: Path, *options: str) -> list[dict[str, Any]]:
    """Returns pip-audit's findings, one for each package; none where it got no answer."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    ran = subprocess.run(
        [*command, *options, "--requirement", str(requirements)], capture_output=True, text=True, check=False
    )
    try:
        return list(json.loads(ran.stdout)["dependencies"])
    except ValueError:
        print(ran.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return []


def index_is_there() -> bool:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as probe:
        probe.write(f"{PROBE}\n")
        probe.flush()
        return any(one.get("vulns") for one in audited(Path(probe.name), "--no-deps"))


def main() -> int:
    strict = "--strict" in sys.argv[1:]
    if not index_is_there():
        print("kainite: NOT AUDITED: no index of advisories can be reached from here", file=sys.stderr)
        return int(strict)
    found = audited(ROOT / "hashes.txt", "--require-hashes")
    holes = [f"{one['name']} {one['version']}: {hole['id']}, fixed in {', '.join(hole['fix_versions']) or 'no version'}"
             for one in found for hole in one.get("vulns", ())]  # fmt: skip
    unknown = [one["name"] for one in found if "skip_reason" in one]
    for line in holes:
        print(f"kainite: {line}", file=sys.stderr)
    print(f"kainite: {len(found)} packages, {len(holes)} known holes; not in the index: {', '.join(unknown) or 'none'}")
    return int(bool(holes) or not found or (strict and bool(unknown)))


if __name__ == "__main__":
    sys.exit(main())

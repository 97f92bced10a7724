"""Builds sdist and wheel, byte for byte the same for the same files: ``make dist``, ``python tools/dist.py [FOLDER]``.

The sdist is made of the files that git knows, in a folder that holds nothing else; the wheel is made of the sdist. So
neither has what lies about in the checkout, and whoever has the sdist gets the same wheel. All time stamps are
``SOURCE_DATE_EPOCH``, by default the time of the last commit. The pinned versions lie beside them: who
installs the wheel needs them first. ``SHA256SUMS`` has the hashes of all.

hatchling is the one of this environment, which ``hashes.txt`` pins, without an environment of the build's own.
Reproducible builds: https://reproducible-builds.org, *SOURCE_DATE_EPOCH*.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PINS = ("constraints.txt", "hashes.txt")
_PATTERNS = {"sdist": "kainite-*.tar.gz", "wheel": "kainite-*.whl"}


def build(folder: Path) -> list[Path]:
    """Builds both files into a folder that has neither; returns their paths.

    Raises:
        subprocess.CalledProcessError: the build failed, and has said why on standard error.
    """
    environment = {"SOURCE_DATE_EPOCH": _committed_at(), **os.environ}
    with tempfile.TemporaryDirectory(prefix="kainite-dist-") as work:
        sources = _copied(Path(work, "sources"))
        sdist = _built("sdist", sources, folder, environment)
        with tarfile.open(sdist) as archive:
            archive.extractall(work, filter="data")
        wheel = _built("wheel", Path(work, sdist.name.removesuffix(".tar.gz")), folder, environment)
    return [sdist, wheel]


def checksums(paths: Sequence[Path]) -> str:
    """Returns the lines that ``sha256sum --check`` reads."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(paths))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def _committed_at() -> str:
    return _git("log", "-1", "--format=%ct").strip()


def _copied(to: Path) -> Path:
    """Copies the files that git knows, as they are in the checkout; those that were deleted there are left out."""
    for name in _git("ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


def _built(target: str, sources: Path, folder: Path, environment: dict[str, str]) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=sources, env=environment, check=True)
    (built,) = folder.glob(_PATTERNS[target])
    return built


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").absolute()
    for old in chain.from_iterable(map(folder.glob, _PATTERNS.values())):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    pins = [Path(shutil.copy(ROOT / name, folder)) for name in _PINS]
    lines = checksums([*build(folder), *pins])
    (folder / "SHA256SUMS").write_text(lines)
    if _git("status", "--porcelain", "--untracked-files=no"):
        print("kainite: built with changes that are not committed: nothing to publish", file=sys.stderr)
    print(lines, end="")


if __name__ == "__main__":
    main()

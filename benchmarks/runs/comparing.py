"""Measures one benchmark at two commits, in turns, and says which figures differ by more than the noise."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from runs.figures import Difference, differences, figures, parsed
from runs.recording import ROOT, BenchmarkError, output_of


def compare(before: str, after: str, benchmark: Path, arguments: Sequence[str], turns: int) -> list[Difference]:
    """Runs the benchmark ``turns`` times at each of two commits, each in a worktree with its own environment.

    The commits take turns, and every other turn begins with the other commit, so that what changes on the machine
    meanwhile meets both.

    Args:
        before, after: the commits, as git names them.
        benchmark: the benchmark's file, relative to the repository.
        arguments: what the benchmark is given besides ``--json``.
        turns: how often each commit is measured.

    Raises:
        BenchmarkError: a commit does not exist, its environment cannot be set up, or the benchmark failed.
    """
    with tempfile.TemporaryDirectory(prefix="kainite-compare-") as name:
        folder = Path(name)
        with checked_out(before, folder / "before") as old, checked_out(after, folder / "after") as new:
            found: tuple[list[Mapping[str, float]], list[Mapping[str, float]]] = ([], [])
            for turn in range(turns):
                for side in ((0, 1), (1, 0))[turn % 2]:
                    print(f"turn {turn + 1} of {turns}, {(before, after)[side]} …", file=sys.stderr)
                    tree = (old, new)[side]
                    output = output_of(tree / ".venv/bin/python", tree / benchmark, arguments)
                    found[side].append(figures(parsed(output)))
    return differences(*found)


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """Yields a worktree of a commit that is set up; removes it afterwards.

    Raises:
        BenchmarkError: there is no such commit, or ``make setup`` failed.
    """
    _run("git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(folder), revision)
    try:
        _run("make", "-C", str(folder), "--silent", "setup")
        yield folder
    finally:
        subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(folder)], check=False)


def table(found: Sequence[Difference]) -> str:
    """Returns the differences as lines for a person, those larger than the noise first."""
    if not found:
        return "No figure changed."
    width = max(len(each.figure) for each in found)
    lines = [f"{'':{width}}{'before':>14}{'after':>14}{'change':>9}{'chance':>8}"]
    for each in sorted(found, key=lambda one: one.chance):
        told = "  larger than the noise" if each.is_real else ""
        lines.append(
            f"{each.figure:{width}}{each.before:>14,.5g}{each.after:>14,.5g}{each.change:>+9.1%}{each.chance:>8.3f}{told}"
        )
    lines.append(f"Of {len(found)} figures chance alone would mark about {len(found) * 0.05:.1f}.")
    return "\n".join(lines)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-500:]}")

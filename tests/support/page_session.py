"""Carries out the commands of a page as a reader does: block by block, in one shell, in an empty folder.

A page's fenced blocks say what is done with them:

==================  ========================================================================================
``sh``              carried out; each of its commands must succeed
``sh fails``        carried out; it must fail
``sh until``        carried out again and again until it prints what the next block shows
``sh java``,        the same as ``sh`` and ``sh until`` where Java's daemon is there, else not carried out
``sh java-until``
``sh install``,     shown and not carried out: how Kainite is installed (``tests/package`` does that), and
``sh elsewhere``    what is done on other hosts
``text``            behind a block that is carried out: what it prints, where … stands for any text
==================  ========================================================================================

Other blocks are pictures.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from kainite_demo.services import SHORT_LIVED_JVM

LIMIT = 150.0
PAUSE = 0.3
FAILS, UNTIL = "fails", "until"
JAVA, JAVA_UNTIL = "java", "java-until"
NOT_CARRIED_OUT = frozenset({"install", "elsewhere"})
ANY_LINES = "(?:.*\n)?"
_FENCED = re.compile(r"^```(\w*)(?: ([\w-]+))?\n(.*?)^```$", re.S | re.M)


@dataclass(frozen=True, slots=True)
class Commands:
    """A block of commands.

    Attributes:
        text: the commands.
        how: the mark behind ``sh``; empty where there is none.
        shown: what they print; None where the page does not show it.
    """

    text: str
    how: str = ""
    shown: str | None = None


def commands_of(page: Path, *, java: bool = False) -> Iterator[Commands]:
    """Yields the blocks of a page that are carried out, in their order; those for Java's daemon where it is there."""
    blocks = [(match[1], match[2] or "", match[3]) for match in _FENCED.finditer(page.read_text(encoding="utf-8"))]
    for number, (language, how, text) in enumerate(blocks):
        assert how in ("", FAILS, UNTIL, JAVA, JAVA_UNTIL, *NOT_CARRIED_OUT), f"{page.name}: a block is marked {how!r}"
        if language != "sh" or how in NOT_CARRIED_OUT or (how in (JAVA, JAVA_UNTIL) and not java):
            continue
        how = {JAVA: "", JAVA_UNTIL: UNTIL}.get(how, how)
        follows = blocks[number + 1] if number + 1 < len(blocks) else ("", "", "")
        shown = follows[2] if follows[0] == "text" else None
        assert shown is not None or how != UNTIL, f"{page.name}: nothing shows until when:\n{text}"
        yield Commands(text, how, shown)


def is_shown(printed: str, shown: str) -> bool:
    """Returns whether a text is as a page shows it; … is any text, and alone in a line any lines, or none."""
    pattern = "".join(ANY_LINES if line == "…" else _pattern(line) for line in _lines(shown))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed)), re.S) is not None


def _pattern(line: str) -> str:
    return ".*?".join(map(re.escape, line.split("…"))) + "\n"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


class PageSession:
    """A shell in an empty folder; everything that it starts ends with it."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._control = folder.with_name(f"{folder.name}.control")
        self._control.mkdir()
        self._shell = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=folder,
            env=environment, text=True, bufsize=1, start_new_session=True,
        )  # fmt: skip
        self._number = 0
        # A terminal's shell has jobs, too; a reader sees a command fail, this shell ends then.
        self._say("set -meuo pipefail")

    def carry_out(self, commands: Commands) -> None:
        """Carries out a block; fails where a command fails, or where something else is printed than is shown."""
        deadline = time.monotonic() + LIMIT
        printed = self._once(commands, deadline)
        while commands.shown is not None and not is_shown(printed, commands.shown):
            told = f"{commands.text}\nprinted:\n{printed}\nThe page shows:\n{commands.shown}"
            if commands.how != UNTIL or time.monotonic() > deadline:
                raise AssertionError(self._with_logs(told))
            time.sleep(PAUSE)
            printed = self._once(commands, deadline)

    def close(self) -> None:
        """Ends whatever still runs."""
        left = list(self._started())
        self._shell.kill()
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        _, alive = psutil.wait_procs(left, timeout=20)
        for process in alive:
            process.kill()
        self._shell.communicate()
        shutil.rmtree(self._control)

    def _started(self) -> Iterator[psutil.Process]:
        """Yields what the shell has started and still runs, also where the shell itself has ended."""
        for process in psutil.process_iter():
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                if process.pid != self._shell.pid and os.getsid(process.pid) == self._shell.pid:
                    yield process

    def _once(self, commands: Commands, deadline: float) -> str:
        self._number += 1
        script, out, done = (self._control / f"{self._number}.{kind}" for kind in ("sh", "out", "done"))
        script.write_text(commands.text, encoding="utf-8")
        behind = {"": "", FAILS: " && exit", UNTIL: " || true"}[commands.how]
        self._say(f". {script} > {out} 2>&1{behind}; touch {done}")
        while not done.exists():
            if self._shell.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(self._with_logs(f"{commands.text}\n{out.read_text()}"))
            time.sleep(0.02)
        return out.read_text(encoding="utf-8")

    def _say(self, line: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{line}\n")

    def _with_logs(self, text: str) -> str:
        """Returns a text with the ends of the logs that the page's programs write."""
        tails = (f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in self.folder.glob("*.log"))
        return "\n".join([text, *tails])


@contextmanager
def page_session(programs: Path, more: Mapping[str, str] | None = None) -> Iterator[PageSession]:
    """Gives a shell that has nothing of the user's, and Kainite's programs on its path."""
    folder = Path(tempfile.mkdtemp(prefix="kp-")) / "empty"  # sockets of PostgreSQL need short paths
    folder.mkdir()
    kept = {name: os.environ[name] for name in ("LANG", "JAVA_HOME") if name in os.environ}
    session = PageSession(
        folder,
        {
            **kept,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder.parent),
            "TMPDIR": str(folder.parent),
            "SPARK_LAUNCHER_OPTS": SHORT_LIVED_JVM,
            "SPARK_SUBMIT_OPTS": SHORT_LIVED_JVM,
            **(more or {}),
        },
    )
    try:
        yield session
    finally:
        session.close()
        shutil.rmtree(folder.parent, ignore_errors=True)

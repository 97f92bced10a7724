"""A loader's process: when it starts, which answers it gives, and when it is replaced."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from kainite.base.errors import ChildExitedError, ChildProtocolError, ChildTimeoutError
from kainite.child.markers.exchange import Answer
from kainite.settings import MarkersSettings
from kainite_spark.targets.exec.loader import LoaderProcess, LoaderSettings

PROGRAM = r"""
import os, sys
for line in sys.stdin:
    word = line.strip()
    if word == "die":
        sys.exit("last words")
    if word == "junk":
        sys.stdout.write("\x17")
    elif word != "silence":
        sys.stdout.write(f"{os.getpid()}\n\0")
    sys.stdout.flush()
"""

Open = Callable[[float], LoaderProcess]


@pytest.fixture
def opened() -> Iterator[Open]:
    processes: list[LoaderProcess] = []

    def open_loader(timeout: float) -> LoaderProcess:
        command = (sys.executable, "-c", PROGRAM)
        processes.append(LoaderProcess(LoaderSettings(command, MarkersSettings(), timeout)))
        return processes[-1]

    yield open_loader
    for process in processes:
        process.close()


def ask(loader: LoaderProcess, *words: str) -> list[bytes]:
    """Asks each word; returns the lines of the answers."""
    answers: list[Answer] = []
    for word in words:
        loader.ask([word.encode() + b"\n"], answers.append)
    return [message for answer in answers for message in answer.messages]


def test_one_process_answers_request_after_request(opened: Open) -> None:
    first, second = ask(opened(60.0), "a", "b")
    assert first == second


def test_a_process_that_ends_is_replaced_at_the_next_request_and_its_last_words_are_the_cause(opened: Open) -> None:
    loader = opened(60.0)
    before = ask(loader, "a")
    with pytest.raises(ChildExitedError, match="last words"):
        ask(loader, "die")
    assert ask(loader, "b") != before


def test_a_process_that_is_silent_too_long_is_given_up(opened: Open) -> None:
    with pytest.raises(ChildTimeoutError, match=r"was silent for 0\.2 s; see loaderTimeoutMillis"):
        ask(opened(0.2), "silence")


def test_a_process_that_breaks_the_protocol_is_replaced(opened: Open) -> None:
    loader = opened(60.0)
    before = ask(loader, "a")
    with pytest.raises(ChildProtocolError):
        ask(loader, "junk")
    assert ask(loader, "b") != before


def test_an_error_of_the_caller_leaves_an_idle_process_running(opened: Open) -> None:
    loader = opened(60.0)
    before = ask(loader, "a")

    def refuse(_: Answer) -> None:
        raise ValueError("the caller's")

    with pytest.raises(ValueError, match="the caller's"):
        loader.ask([b"b\n"], refuse)
    assert ask(loader, "c") == before


def test_a_closed_process_may_be_closed_again_and_starts_anew(opened: Open) -> None:
    loader = opened(60.0)
    before = ask(loader, "a")
    loader.close()
    loader.close()
    assert ask(loader, "b") != before

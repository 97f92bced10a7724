"""Finds what a test leaves to the garbage collector in that very test: hooks of pytest for ``conftest.py``.

A connection, a process or a file that nobody closes is a warning, thus an error, when the collector finds it: without
this module some later test failed, and nothing told which one had left it. The collector looks once after each test,
when its fixtures have ended and pytest has dropped its log records. A look takes milliseconds, because what there was
before the first test, or when a look last took long, is never looked at again (``gc.freeze``).

What an attempt that *failed* left open is dropped before the next test: the attempt has failed already, and pytest
keeps its frames in ``sys`` meanwhile.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Generator

import pytest

LONG_LOOK_S = 0.01
_FRAMES_OF_A_FAILURE = ("last_exc", "last_type", "last_value", "last_traceback")


class LeftOpenError(Exception):
    """A test has ended, and something that it opened was left to the garbage collector."""


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart() -> None:
    if _has_failed():
        for name in _FRAMES_OF_A_FAILURE:
            vars(sys).pop(name, None)
        left_open()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    yield
    found = [] if _has_failed() else left_open()
    if found:
        raise LeftOpenError("; ".join(found))


def left_open() -> list[str]:
    """Collects what nothing holds any more; returns what was not closed by then."""
    found: list[str] = []
    told, sys.unraisablehook = sys.unraisablehook, lambda args: found.append(f"{args.exc_value} ({args.object!r})")
    began = time.process_time()
    try:
        gc.collect()
    finally:
        sys.unraisablehook = told
    if time.process_time() - began > LONG_LOOK_S:
        gc.freeze()
    return found


def _has_failed() -> bool:
    return hasattr(sys, "last_value")

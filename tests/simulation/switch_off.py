"""A plugin of pytest that switches a safeguard off for the whole run; its name is in the environment."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from simulation.tested import TESTED, VARIABLE

_OFF = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    name = os.environ[VARIABLE]
    _OFF.enter_context(next(tested.mutation for tested in TESTED if tested.mutation.name == name).off())


def pytest_unconfigure(config: pytest.Config) -> None:
    _OFF.close()

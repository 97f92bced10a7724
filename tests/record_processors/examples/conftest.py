"""The examples, made ready once a test process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kainite.new_processor.catalogue import Example
from support.example_processors import make_ready


@pytest.fixture(scope="session")
def command_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Example], tuple[str, ...]]:
    """Returns an example's command; the first call compiles the example."""
    ready: dict[Example, tuple[str, ...]] = {}

    def command(example: Example) -> tuple[str, ...]:
        if example not in ready:
            ready[example] = make_ready(example, tmp_path_factory.mktemp(f"{example.language}-{example.dialect}"))
        return ready[example]

    return command

"""What an apply job works with says whether the log has several targets."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.settings import ApplySettings
from kainite.settings.assignment import TableAssignment
from kainite.store.memory import MemoryStore
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.together.target import TogetherTarget

ALL_TARGETS = AtomicTarget({}, TableAssignment())
TOGETHER = TogetherTarget({}, TableAssignment())


@pytest.mark.parametrize(
    ("target", "name", "several"),
    [(object(), "", False), (object(), "crm", True), (ALL_TARGETS, "", True), (TOGETHER, "", True)],
)
def test_one_of_several_targets_and_all_of_them_keep_the_common_mark(target: Any, name: str, several: bool) -> None:
    runner: Any = None
    environment = ApplyEnvironment(ApplySettings(), MemoryStore(), "0", "job", target, runner, "log/0", name=name)
    assert environment.of_several is several

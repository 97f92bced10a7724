"""Which triggers and rules may fire."""

from __future__ import annotations

import pytest

from kainite.settings import ApplySettings, TargetTriggers
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite_spark.targets.hooks import Hook, HookPolicy, refusal

TABLES = {name: Table(name, "public", {}) for name in ("a", "b")}
HOOKS = [Hook("a", "t", "CREATE\n  TRIGGER t"), Hook("b", "u", "CREATE TRIGGER u")]


@pytest.mark.parametrize(
    ("triggers", "meant", "unwanted"),
    [
        (TargetTriggers.REFUSE, (), "ab"),
        (TargetTriggers.REFUSE, ("public.a",), "b"),
        (TargetTriggers.OFF, ("a",), "b"),
        (TargetTriggers.FIRE, (), ""),
    ],
)
def test_what_may_not_fire(triggers: TargetTriggers, meant: tuple[str, ...], unwanted: str) -> None:
    settings = ApplySettings(triggers=triggers, trigger_tables=meant)
    policy = HookPolicy.of(settings, Catalogue(TABLES, "public"))
    assert "".join(hook.table for hook in policy.unwanted(HOOKS)) == unwanted


def test_a_refusal_is_one_line_with_each_definition() -> None:
    assert "a: CREATE TRIGGER t; b: CREATE TRIGGER u." in refusal(HOOKS)
    assert "\n" not in refusal(HOOKS)

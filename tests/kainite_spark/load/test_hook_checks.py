"""Triggers of the target before a load."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite import settings
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite_spark.load.hook_checks import look_at_hooks
from support.replicas import LOG, run

TRIGGER = """
    CREATE TABLE item (id int PRIMARY KEY);
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER t AFTER INSERT ON item FOR EACH ROW EXECUTE FUNCTION f();
"""


@pytest.mark.parametrize(("setting", "verdict"), [("refuse", "wrong"), ("fire", "warning"), ("off", "ok")])
def test_what_fires_is_told_by_what_the_settings_say(
    source: SourceSlot, postgres: str, tmp_path: Path, setting: str, verdict: str
) -> None:
    run(postgres, TRIGGER)
    path = tmp_path / "shop.properties"
    path.write_text(f"applicationName=shop\ntarget={postgres}\ntargetTriggers={setting}\n")
    [found] = look_at_hooks(settings.load(path, needs=()), ReplicaEnds(source, postgres, LOG))
    assert found.verdict == verdict
    assert "item" in found.found

from __future__ import annotations

from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate.found_load import source_name


def test_a_source_has_one_name_on_each_of_its_timelines() -> None:
    points = [ConsistentPoint(16, "a snapshot", SourceIdentity("7", timeline, "shop")) for timeline in (1, 2)]
    assert [source_name(point) for point in points] == ["7/shop", "7/shop"]

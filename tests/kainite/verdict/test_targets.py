"""A file whose targets differ from those of the log's owner is told, with what mends it."""

from __future__ import annotations

from kainite.observe.check import Level
from kainite.verdict.targets import differing_targets


def test_the_check_names_the_owner_and_the_file() -> None:
    check = differing_targets("host-1", "/etc/shop.properties")
    assert (check.name, check.level) == ("targets", Level.DEGRADED)
    assert check.cause.startswith("worker host-1, which owns the log, has other targets")
    assert "kainite run -p /etc/shop.properties --check" in check.remedy


def test_health_tells_no_path() -> None:
    assert "-p FILE --check" in differing_targets("host-1").remedy

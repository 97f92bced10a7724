"""What a daemon may have open grows with what its settings allow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kainite.settings import Settings, load
from kainite.worker.file_limit import needed


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "app.properties"
    path.write_text("applicationName=app\nstreamName=s\nexecutableName=cat\n")
    return load(path)


def test_what_is_needed_grows_with_shards_and_ports(settings: Settings) -> None:
    few = replace(settings, leases=replace(settings.leases, max_leases=10))
    assert needed(few, ports=0) < 1_024 < needed(few, ports=1) < needed(few, ports=2)
    assert needed(few, ports=0) < needed(settings, ports=0)
    endless = replace(settings, leases=replace(settings.leases, max_leases=2**31 - 1))
    assert needed(endless, ports=1) < 200_000

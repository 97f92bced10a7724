"""The list has what each of its parts finds, and is empty for settings that expose nothing."""

from __future__ import annotations

from pathlib import Path

from kainite.settings import load
from kainite.settings.exposure.listing import exposures

PLAIN = "applicationName=app\nstreamName=s\nexecutableName=cat\n"


def test_the_list_has_what_all_parts_find(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(f"{PLAIN}s3Endpoint=http://s3.internal\nauditTrail=trail\nextractorName=x --token geheim\n")
    path.chmod(0o644)
    (tmp_path / "trail").mkdir(mode=0o755)
    where = [exposure.where for exposure in exposures(load(path), {"HOME": str(tmp_path)})]
    assert where == [str(path), "extractorName", "s3Endpoint http://s3.internal", f"auditTrail {tmp_path / 'trail'}"]


def test_settings_that_expose_nothing_have_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(PLAIN)
    assert exposures(load(path), {"HOME": str(tmp_path)}) == ()

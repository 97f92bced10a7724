"""What a settings file says of a replica's two databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite import settings
from kainite.base.errors import SettingsError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.configured_ends import ends_of, source_of

COMMAND = "kainite-extract-postgresql --source postgresql:///shop --slot s --publication p"


def file(folder: Path, **changed: str) -> Path:
    values = {
        "applicationName": "shop", "target": "postgresql://h/replica", "extractorName": COMMAND,
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "o", **changed,
    }  # fmt: skip
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def test_both_databases_are_named(tmp_path: Path) -> None:
    ends = ends_of(settings.load(file(tmp_path), needs=()))
    assert ends.source == SourceSlot("postgresql:///shop", "s", "p")
    assert (ends.target, ends.log_partition) == ("postgresql://h/replica", "shop-log/0")
    assert "shop'" not in repr(ends)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"extractorName": "my-extractor"}, "kainite-extract-postgresql"),
        ({"extractorName": "kainite-extract-postgresql --slot s"}, "Missing option '--source'"),
        ({"target": "sqlite:///x.db"}, "postgresql://"),
        ({"extractorOffsets": "time"}, "extractorOffsets=kainite"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, changed: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        ends_of(settings.load(file(tmp_path, **changed), needs=()))


def test_the_extractor_may_be_named_as_a_module_and_with_its_folder() -> None:
    options = COMMAND.split()[1:]
    module = ["/opt/python", "-m", "kainite.capture.postgresql.command", *options, "--table", "public.t"]
    assert source_of(module) == (SourceSlot("postgresql:///shop", "s", "p"), ("public.t",))
    assert source_of(["/opt/bin/kainite-extract-postgresql", *options])[1] == ()

"""``kainite replicate add`` and ``reload`` with wrong input; test_replicate_cli.py has them at work."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.cli.main import main
from support.postgresql_source import source

__all__ = ["source"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reload", "none"], "the source has no table public.none"),
        (["add", "own.item"], "the source has no table own.item"),
        (["reload", "item"], "the target has no table public.item: kainite replicate add"),
        (["reload"], "Missing argument 'TABLE...'"),
    ],
)
def test_a_table_that_is_not_there_is_told_before_spark_starts(
    source: SourceSlot, postgres: str, tmp_path: Path, words: list[str], said: str
) -> None:
    path = tmp_path / "shop.properties"
    path.write_text(
        "applicationName = shop\nstreamName = shop\nextractorMode = cyclic\nextractorOffsets = kainite\n"
        f"target = {postgres}\nextractorName = {PROGRAM} --source {source.url!r} --slot shop --publication changes\n"
    )
    result = CliRunner().invoke(main, ["replicate", *words, "-p", str(path)])
    assert result.exit_code != 0
    assert said in result.output

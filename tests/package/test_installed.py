"""The wheel, installed outside the checkout: its commands, a settings file, and a child that it brings along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from package.conftest import ROOT, run

pytestmark = pytest.mark.xdist_group("package")

PROCESSORS = ("aurora-dsql", "aws-dms", "debezium", "postgresql")


def test_the_command_line_lists_its_commands(shard_host: Path, tmp_path: Path) -> None:
    ran = run(shard_host / "kainite", "--help", folder=tmp_path)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert all(f"\n  {name} " in ran.stdout for name in ("run", "apply", "extract", "conform", "log"))


def test_each_record_processor_is_a_command(shard_host: Path, tmp_path: Path) -> None:
    for name in PROCESSORS:
        ran = run(shard_host / f"kainite-processor-{name}", "--help", folder=tmp_path)
        assert (ran.returncode, ran.stderr) == (0, ""), name
        assert f"kainite-processor-{name} [OPTIONS]" in ran.stdout


def test_a_settings_file_that_names_one_is_sound(shard_host: Path, tmp_path: Path) -> None:
    settings = tmp_path / "orders.properties"
    settings.write_text(
        "applicationName = orders\nstreamName = orders\nregionName = us-east-1\n"
        "executableName = kainite-processor-postgresql --stream orders\nunitsOfWork = true\n"
    )

    ran = run(shard_host / "kainite", "run", "--check", "-p", str(settings), folder=tmp_path)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "kainite-processor-postgresql" in ran.stdout


def test_a_record_processor_answers_as_a_child(shard_host: Path, tmp_path: Path) -> None:
    samples = ROOT / "record_processors" / "postgresql_changes" / "samples.jsonl"
    cases = ["--case=initialize", "--case=one-record", "--case=shard-ended"]
    child = ["--json", "--records", str(samples), *cases, "--", "kainite-processor-postgresql"]

    ran = run(shard_host / "kainite", "conform", *child, folder=tmp_path)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)


def test_the_examples_come_along(shard_host: Path, tmp_path: Path) -> None:
    ran = run(shard_host / "kainite", "new-processor", "perl", "orders", folder=tmp_path)

    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "orders" / "processor.properties").is_file()


def test_without_an_extra_a_command_names_it_in_a_line(bare: Path, tmp_path: Path) -> None:
    processor = run(bare / "kainite-processor-debezium", folder=tmp_path)
    extractor = run(bare / "kainite-extract-postgresql", "--source", "postgresql:///x", "--slot", "s",
                    "--publication", "p", folder=tmp_path)  # fmt: skip

    assert (processor.returncode, processor.stderr.count("\n")) == (1, 1)
    assert "pip install 'kainite[processors]'" in processor.stderr
    assert (extractor.returncode, extractor.stderr.count("\n")) == (1, 1)
    assert "pip install 'kainite[postgresql]'" in extractor.stderr
    assert run(bare / "kainite", "--version", folder=tmp_path).returncode == 0

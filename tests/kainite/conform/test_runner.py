"""The runner passes processors that implement the protocol, written with Amazon's libraries and without any.

``tests/children/README.md`` says what these processors do; the examples in ``record_processors/examples`` have tests of
their own.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.conform import CaseResult, CaseVerdict, ConformOptions, ConformReport, run
from kainite.conform.cases.case import Stage
from kainite.conform.cases.samples import Samples, generic, read_samples
from kainite.conform.exchange.child_run import AnswerLimits
from kainite.conform.runner import cases_of
from kainite.settings import ChildProtocol, ChildSettings
from support.broken_children import PATIENT, json_lines_child

ROOT = Path(__file__).parents[3]
CHILDREN = ROOT / "tests" / "children"
NODE_LIBRARY = Path(sys.prefix) / "peers/node/node_modules/aws-kcl"
PROCESSOR = str(Path(sys.executable).with_name("kainite-processor-postgresql"))
POSTGRESQL = ROOT / "record_processors" / "postgresql_changes"
LIMITS = AnswerLimits(timeout=60.0, slow=60.0)
ILLEGAL = "'SHARD_END', told IllegalArgumentException"  # all the children ask for that, to see it refused
FEW = ("initialize", "one-record", "odd-keys", "shutdown")
SOME = ("initialize", "one-record", "odd-keys", "checkpoint", "shard-ended", "shutdown", "end-of-input")


def tried(
    *command: str,
    protocol: ChildProtocol = ChildProtocol.JSON_LINES,
    samples: Samples | None = None,
    large: int = 10_000_000,
    only: tuple[str, ...] = (),
) -> ConformReport:
    child = ChildSettings(command, protocol=protocol)
    return run(ConformOptions(child, samples or generic(), LIMITS, large=large, only=only))


def noted(report: ConformReport) -> dict[str, str]:
    """Returns the findings above PASS, by case."""
    return {result.name: result.text for result in report.results if result.verdict > CaseVerdict.PASS}


def result_of(report: ConformReport, name: str) -> CaseResult:
    return next(result for result in report.results if result.name == name)


def test_a_child_on_amazons_python_library_passes_and_refuses_odd_payloads() -> None:
    samples = read_samples(POSTGRESQL / "samples.jsonl")

    report = tried(PROCESSOR, samples=samples)

    assert report.ok()
    assert set(noted(report)) <= {"empty-payload", "binary-payload", "odd-text"}
    assert "refused the payload" in result_of(report, "binary-payload").text
    assert "asked 3 times, told ThrottlingException" in result_of(report, "checkpoint-throttled").text
    assert "ended with status 1" in result_of(report, "checkpoint-invalid-state").text


def test_amazons_own_sample_passes() -> None:
    spec = find_spec("samples.sample_kclpy_app")
    assert spec is not None
    assert spec.origin is not None

    report = tried(sys.executable, spec.origin, only=("initialize", "one-record", "empty-batch"))

    assert report.ok()
    assert result_of(report, "empty-batch").verdict is CaseVerdict.NOTE
    assert "'None'" in result_of(report, "empty-batch").text


def test_a_child_on_amazons_node_library_passes(tmp_path: Path) -> None:
    command = ("node", str(CHILDREN / "aws_kcl.js"), str(tmp_path / "notes"), str(NODE_LIBRARY))

    report = tried(*command, only=(*SOME, "reads-first", "empty-batch", "large"))

    assert report.ok()
    assert set(noted(report)) == {"one-record", "empty-batch"}
    assert ILLEGAL in result_of(report, "one-record").text
    assert "TypeError" in result_of(report, "empty-batch").text


def test_a_child_in_perl_passes(tmp_path: Path) -> None:
    report = tried("perl", str(CHILDREN / "raw.pl"), str(tmp_path / "notes"), large=100_000)

    assert report.ok()
    assert set(noted(report)) == {"one-record"}
    assert len(report.results) == 28


def test_a_child_in_bash_passes(tmp_path: Path) -> None:
    report = tried("bash", str(CHILDREN / "raw.sh"), str(tmp_path / "notes"), only=FEW)

    assert report.ok()
    assert set(noted(report)) == {"one-record"}


def test_a_child_of_the_first_form_passes(tmp_path: Path) -> None:
    report = tried(
        sys.executable,
        str(CHILDREN / "raw_v0.py"),
        str(tmp_path / "notes"),
        protocol=ChildProtocol.JSON_LINES_V0,
        large=100_000,
    )

    assert report.ok()
    assert set(noted(report)) == {"one-record", "empty-batch"}
    assert not [result.name for result in report.results if "shutdown" in result.name]


def test_payloads_that_the_child_is_not_meant_for_are_told_from_a_breach() -> None:
    report = tried(PROCESSOR, only=("one-record",))

    assert "if it takes certain payloads only, give it some: --records FILE" in report.results[0].text


def test_cases_that_build_on_a_failed_one_are_left_out() -> None:
    report = run(ConformOptions(json_lines_child("dies"), limits=replace(PATIENT, hold=None), large=10_000))
    verdicts = {result.name: result.verdict for result in report.results}

    assert verdicts["one-record"] is CaseVerdict.FAIL
    assert verdicts["large"] is CaseVerdict.SKIPPED
    assert verdicts["lease-lost-at-once"] is CaseVerdict.PASS
    assert not report.ok()


def test_an_unknown_case_is_refused_with_the_known_ones() -> None:
    options = ConformOptions(ChildSettings(("true",)), only=("no-such-case",))

    with pytest.raises(SettingsError, match="there is no case 'no-such-case' in this dialect; there are initialize, "):
        cases_of(options)


@pytest.mark.parametrize(
    ("options", "first", "number"),
    [
        (ConformOptions(ChildSettings(("true",))), "initialize", 28),
        (ConformOptions(ChildSettings(("true",), protocol=ChildProtocol.JSON_LINES_V0)), "initialize", 24),
        (ConformOptions(ChildSettings(("true",), protocol=ChildProtocol.MARKERS)), "one-message", 10),
        (ConformOptions(ChildSettings(("true",), protocol=ChildProtocol.MARKERS), stage=Stage.LOAD), "one-message", 8),
        (ConformOptions(ChildSettings(("true",), protocol=ChildProtocol.MARKERS), stage=Stage.EXTRACT), "run", 1),
    ],
)
def test_dialect_and_stage_choose_the_cases(options: ConformOptions, first: str, number: int) -> None:
    cases = cases_of(options)

    assert (cases[0].name, len(cases)) == (first, number)

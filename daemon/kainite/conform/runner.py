"""Runs all cases, one child after another: :func:`run`.

One child runs at a time, so that no other child slows its answers down. A case is skipped when one that it builds on
has failed: it would only fail for the same reason, and a child that hangs would cost a time limit for each case.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kainite.base.errors import SettingsError
from kainite.child.json_lines.dialect import JsonLines
from kainite.child.json_lines.messages import KCL, V0, Spelling
from kainite.child.json_lines.records import render_process_records, render_process_records_v0
from kainite.child.markers.exchange import Exchange
from kainite.child.markers.extraction import Extraction
from kainite.child.markers.start_parameters import start_parameters
from kainite.child.piped_process import Program
from kainite.child.process import SHARD_VARIABLE
from kainite.conform.cases.case import Case, EndOfInput, Extract, Messages, ScriptedCall, Stage, Step, Withheld
from kainite.conform.cases.extractor import extractor_cases
from kainite.conform.cases.json_lines import json_lines_cases
from kainite.conform.cases.loader import loader_cases
from kainite.conform.cases.markers import markers_cases
from kainite.conform.cases.samples import Samples, generic
from kainite.conform.exchange.child_run import AnswerLimits, ChildRun
from kainite.conform.exchange.extraction import ExtractionDriver
from kainite.conform.exchange.json_lines import SHARD, JsonLinesDriver
from kainite.conform.exchange.markers import MarkersDriver
from kainite.conform.exchange.step_result import StepResult
from kainite.conform.report.findings import CaseResult, CaseVerdict, ConformReport, Finding
from kainite.conform.report.judging import (
    judge_arrangements,
    judge_call,
    judge_end,
    judge_extract,
    judge_idle,
    judge_messages,
    over,
)
from kainite.conform.report.loader_answers import refused
from kainite.kinesis.read.record_batch import Render
from kainite.settings import ChildProtocol, ChildSettings, ExtractMode, ExtractSettings

GRACE_S: Final = 1.0
"""Seconds that a child has to end after its case."""

SHORTEST_HOLD_S: Final = 0.2
LONGEST_HOLD_S: Final = 2.0
UNKNOWN_HOLD_S: Final = 0.5
"""Seconds that ends are held back before a case has shown how long the child takes to start."""

LARGE: Final = 10_000_000

_FORMS: Final[dict[ChildProtocol, tuple[Spelling, Render]]] = {
    ChildProtocol.JSON_LINES: (KCL, render_process_records),
    ChildProtocol.JSON_LINES_V0: (V0, render_process_records_v0),
}

_AS_A_SERVICE: Final = {"PYTHONUNBUFFERED": ""}
"""Unsets what is often set where programs are developed: it hides a forgotten flush until they run as a service."""

Driver: TypeAlias = JsonLinesDriver | MarkersDriver | ExtractionDriver


@dataclass(frozen=True, slots=True)
class ConformOptions:
    """The cases to try, the command to try them on, and the time limits.

    Attributes:
        child: the command, its dialect and its markers.
        samples: payloads that the record processor is meant to understand.
        limits: how long answers may take.
        large: the payload of the large call, bytes.
        only: names of the cases to run; without names all cases run.
        stage: what the command is meant for; extractors and loaders speak markers.
        extract: how an extractor is asked.
        for_next_stage: the messages of a transform go to another stage's stream, and need not be deltas.
    """

    child: ChildSettings
    samples: Samples = field(default_factory=generic)
    limits: AnswerLimits = field(default_factory=AnswerLimits)
    large: int = LARGE
    only: tuple[str, ...] = ()
    stage: Stage = Stage.TRANSFORM
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    for_next_stage: bool = False


@dataclass(frozen=True, slots=True)
class CaseProgress:
    """A case that begins or, with its result, has ended."""

    case: Case
    number: int
    total: int
    result: CaseResult | None = None


def run(options: ConformOptions, progress: Callable[[CaseProgress], None] = lambda _: None) -> ConformReport:
    """Runs all cases; ``progress`` is called before and after each.

    Raises:
        SettingsError: ``options.only`` names an unknown case.
        ChildExitedError: the command cannot be started.
    """
    return asyncio.run(run_cases(options, progress))


async def run_cases(
    options: ConformOptions, progress: Callable[[CaseProgress], None] = lambda _: None
) -> ConformReport:
    """Does what :func:`run` does, on a running loop."""
    cases = cases_of(options)
    results: dict[str, CaseResult] = {}
    limits = options.limits
    for number, case in enumerate(cases, 1):
        progress(CaseProgress(case, number, len(cases)))
        limits = _with_hold(limits, results)
        results[case.name] = _left_out(case, results) or _without_repeats(await _tried(case, options, limits), results)
        progress(CaseProgress(case, number, len(cases), results[case.name]))
    return ConformReport(options.child.command, options.child.protocol, tuple(results.values()))


def cases_of(options: ConformOptions) -> tuple[Case, ...]:
    """Returns the chosen cases of the dialect.

    Raises:
        SettingsError: ``options.only`` names an unknown case.
    """
    cases = _all_cases(options)
    known = [case.name for case in cases]
    for name in options.only:
        if name not in known:
            raise SettingsError(f"--case: there is no case {name!r} in this dialect; there are {', '.join(known)}")
    return tuple(case for case in cases if not options.only or case.name in options.only)


def _all_cases(options: ConformOptions) -> tuple[Case, ...]:
    child = options.child
    if options.stage is Stage.EXTRACT:
        return extractor_cases(options.extract)
    if child.protocol in _FORMS:
        return json_lines_cases(child.protocol, options.samples, options.large)
    spoken = child.markers
    if options.stage is Stage.LOAD:
        return loader_cases(spoken.batching, options.samples)
    return markers_cases(spoken.markers, spoken.batching, spoken.batch_size, options.samples, options.large)


def _with_hold(limits: AnswerLimits, results: dict[str, CaseResult]) -> AnswerLimits:
    """Returns the limits with the time for which ends are held back: 1.5 times as long as the child takes to start."""
    if limits.hold is not None or not results:
        return limits
    first = next(iter(results.values())).slowest or 0.0
    return replace(limits, hold=min(max(1.5 * first, SHORTEST_HOLD_S), LONGEST_HOLD_S))


def _left_out(case: Case, results: dict[str, CaseResult]) -> CaseResult | None:
    for name in case.needs:
        if name in results and results[name].verdict in (CaseVerdict.FAIL, CaseVerdict.SKIPPED):
            return CaseResult(case.name, case.title, (Finding(CaseVerdict.SKIPPED, f"not tried: {name} failed"),))
    return None


def _without_repeats(result: CaseResult, results: dict[str, CaseResult]) -> CaseResult:
    """Returns the result without findings about the child that an earlier case has reported."""
    said = {finding for earlier in results.values() for finding in earlier.findings if finding.once}
    return replace(result, findings=tuple(finding for finding in result.findings if finding not in said))


async def _tried(case: Case, options: ConformOptions, limits: AnswerLimits) -> CaseResult:
    """Takes one child through the case, or one for each life of its arrangements."""
    began = time.monotonic()
    if not case.arrangements:
        lived = await _lived(case, options, limits)
        return _result(case, lived.findings, lived, began)
    given: dict[str, Counter[bytes]] = {}
    for arrangement in case.arrangements:
        given[arrangement.name] = Counter()
        for steps in arrangement.lives:
            lived = await _lived(replace(case, steps=steps), options, limits)
            if lived.failed or not lived.settled:
                return _result(case, lived.findings, lived, began)
            given[arrangement.name] += lived.given
    return _result(case, judge_arrangements(case, given), lived, began)


def _result(case: Case, findings: list[Finding], lived: _CaseRun, began: float) -> CaseResult:
    failed = any(finding.verdict is CaseVerdict.FAIL for finding in findings)
    exchange = lived.transcript if failed else ()
    return CaseResult(case.name, case.title, tuple(findings), lived.slowest, time.monotonic() - began, exchange)


async def _lived(case: Case, options: ConformOptions, limits: AnswerLimits) -> _CaseRun:
    """Starts a child, takes it through the case's steps, and ends it."""
    own = replace(limits, timeout=limits.timeout * case.patience, hold=limits.hold or UNKNOWN_HOLD_S)
    child, driver = _started(options, own, case.held)
    case_run = _CaseRun(case, options, own, child, driver)
    try:
        await case_run.live()
    finally:
        await child.close(0.0 if case_run.failed else GRACE_S)
    return case_run


def _started(options: ConformOptions, limits: AnswerLimits, held: Withheld | None) -> tuple[ChildRun, Driver]:
    child = options.child
    environment = {SHARD_VARIABLE: SHARD, **_AS_A_SERVICE}
    if child.protocol in _FORMS:
        spelling, render = _FORMS[child.protocol]
        dialect = JsonLines(spelling)
        run = ChildRun(Program(child.command, SHARD, environment=environment), dialect.receive, dialect.receive_eof)
        return run, JsonLinesDriver(run, dialect, render, limits, held)
    spoken = child.markers
    if options.stage is Stage.EXTRACT:
        return _extractor_started(options, limits, held, environment)
    exchange = Exchange(spoken.markers, spoken.batching, batch_size=spoken.batch_size)
    arguments, variables = start_parameters(spoken)
    program = Program((*child.command, *arguments), SHARD, environment={**environment, **variables})
    run = ChildRun(program, exchange.receive, lambda: None)  # the child's exit is reported anyway
    driver = MarkersDriver(
        run, exchange, spoken.markers, spoken.batch_size, limits, held, for_next_stage=options.for_next_stage
    )
    return run, driver


def _extractor_started(
    options: ConformOptions, limits: AnswerLimits, held: Withheld | None, environment: Mapping[str, str]
) -> tuple[ChildRun, Driver]:
    spoken = options.child.markers
    extraction = Extraction(spoken.extraction, cyclic=options.extract.mode is ExtractMode.CYCLIC)
    arguments, variables = start_parameters(spoken)
    program = Program((*options.child.command, *arguments), SHARD, environment={**environment, **variables})
    run = ChildRun(program, extraction.receive, extraction.receive_eof)
    return run, ExtractionDriver(run, extraction, limits, held)


class _CaseRun:
    """One child's way through a case."""

    def __init__(
        self, case: Case, options: ConformOptions, limits: AnswerLimits, child: ChildRun, driver: Driver
    ) -> None:
        self.findings: list[Finding] = []
        self.slowest: float | None = None
        self._refused = False  # a loader has refused the unit that it was sent
        self._case = case
        self._options = options
        self._limits = limits
        self._child = child
        self._driver = driver

    @property
    def failed(self) -> bool:
        return any(finding.verdict is CaseVerdict.FAIL for finding in self.findings)

    @property
    def settled(self) -> bool:
        """Tells whether no record of the child will come again."""
        return self._driver.settled

    @property
    def given(self) -> Counter[bytes]:
        return self._driver.given()

    @property
    def transcript(self) -> tuple[str, ...]:
        return self._child.transcript.lines()

    async def live(self) -> None:
        """Takes the child through all steps, or as many as it survives."""
        for step in self._case.steps:
            step_result = await self._taken(step)
            if step_result is None or over(step_result):
                return
        self.findings += judge_idle(self._case, await self._driver.idle())

    async def _taken(self, step: Step) -> StepResult | None:
        own = self._options.samples.own
        match step, self._driver:
            case ScriptedCall(), JsonLinesDriver() as driver:
                step_result = await driver.ask(step)
                self.findings += judge_call(self._case, step, step_result, self._limits.slow, own_samples=own)
            case Messages(), MarkersDriver() as driver:
                if step.loading is not None and self._refused:
                    step = replace(step, loading=replace(step.loading, loaded=frozenset()))
                step_result = await driver.ask(step)
                self._refused = self._refused or (step.loading is not None and refused(step_result))
                on_death = self._options.child.markers.on_death
                self.findings += judge_messages(
                    self._case, step, step_result, self._limits.slow, own_samples=own, on_death=on_death
                )
            case Extract(), ExtractionDriver() as driver:
                step_result = await driver.ask(step)
                self.findings += judge_extract(self._case, step, step_result)
            case EndOfInput(), _:
                took = await self._child.ends(self._limits.timeout)
                self.findings += judge_end(took, self._child.status, self._limits.timeout)
                return None
            case _:
                raise ValueError(f"{step} is no step of this dialect")
        if not self._case.held:  # with held ends, most of the time is Kainite's own waiting
            self.slowest = max(self.slowest or 0.0, step_result.seconds)
        return step_result

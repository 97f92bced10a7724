"""All cases, one child after another: :func:`run`.

One at a time, so that how long an answer takes is the child's own doing. A case is left out when one that it builds on
has failed: it would only fail for the same reason, and a child that hangs would cost a time limit for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kainite.base.errors import SettingsError
from kainite.child.json_lines.dialect import JsonLines
from kainite.child.json_lines.messages import KCL, V0, Spelling
from kainite.child.markers.exchange import Exchange
from kainite.child.markers.start_parameters import start_parameters
from kainite.child.piped_process import Program
from kainite.child.process import SHARD_VARIABLE
from kainite.conform.findings import CaseResult, Finding, Report, Verdict
from kainite.conform.heard import Heard
from kainite.conform.json_lines_cases import json_lines_cases
from kainite.conform.json_lines_talk import SHARD, JsonLinesTalk
from kainite.conform.judging import judge_call, judge_end, judge_idle, judge_messages, over
from kainite.conform.markers_cases import markers_cases
from kainite.conform.markers_talk import MarkersTalk
from kainite.conform.samples import Samples, generic
from kainite.conform.script import Call, Case, EndOfInput, Held, Messages, Step
from kainite.conform.stage import Limits, Stage
from kainite.kinesis.read.batch import Render, render_process_records, render_process_records_v0
from kainite.settings import ChildProtocol, ChildSettings

GRACE_S: Final = 1.0
"""For a child to end after its case."""

SHORTEST_HOLD_S: Final = 0.2
LONGEST_HOLD_S: Final = 2.0
UNKNOWN_HOLD_S: Final = 0.5
"""Where no case before has shown how long the child takes to start."""

LARGE: Final = 10_000_000

_FORMS: Final[dict[ChildProtocol, tuple[Spelling, Render]]] = {
    ChildProtocol.JSON_LINES: (KCL, render_process_records),
    ChildProtocol.JSON_LINES_V0: (V0, render_process_records_v0),
}

_AS_A_SERVICE: Final = {"PYTHONUNBUFFERED": ""}
"""What is often set where programs are developed, and hides a forgotten flush until they run as a service."""

Talk: TypeAlias = JsonLinesTalk | MarkersTalk


@dataclass(frozen=True, slots=True)
class Options:
    """What to try, and how.

    Attributes:
        child: the command, its dialect and its markers.
        samples: payloads that it is meant to understand.
        limits: how long answers may take.
        large: how many bytes of payload the large call has.
        only: names of cases; none: all.
    """

    child: ChildSettings
    samples: Samples = field(default_factory=generic)
    limits: Limits = field(default_factory=Limits)
    large: int = LARGE
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """A case begins, or, with its result, has ended."""

    case: Case
    number: int
    total: int
    result: CaseResult | None = None


def run(options: Options, progress: Callable[[Progress], None] = lambda _: None) -> Report:
    """Try all cases; ``progress`` is called before and after each.

    Raises:
        SettingsError: a case was named that there is not.
        ChildExitedError: the command cannot be started.
    """
    return asyncio.run(run_cases(options, progress))


async def run_cases(options: Options, progress: Callable[[Progress], None] = lambda _: None) -> Report:
    """:func:`run` on a running loop."""
    cases = cases_of(options)
    results: dict[str, CaseResult] = {}
    limits = options.limits
    for number, case in enumerate(cases, 1):
        progress(Progress(case, number, len(cases)))
        limits = _with_hold(limits, results)
        results[case.name] = _left_out(case, results) or _without_repeats(await _tried(case, options, limits), results)
        progress(Progress(case, number, len(cases), results[case.name]))
    return Report(options.child.command, options.child.protocol, tuple(results.values()))


def cases_of(options: Options) -> tuple[Case, ...]:
    """The cases of the dialect that were chosen.

    Raises:
        SettingsError: one that there is not.
    """
    cases = _all_cases(options)
    known = [case.name for case in cases]
    for name in options.only:
        if name not in known:
            raise SettingsError(f"--case: there is no case {name!r} in this dialect; there are {', '.join(known)}")
    return tuple(case for case in cases if not options.only or case.name in options.only)


def _all_cases(options: Options) -> tuple[Case, ...]:
    child = options.child
    if child.protocol in _FORMS:
        return json_lines_cases(child.protocol, options.samples, options.large)
    spoken = child.markers
    return markers_cases(spoken.markers, spoken.batching, spoken.batch_size, options.samples, options.large)


def _with_hold(limits: Limits, results: dict[str, CaseResult]) -> Limits:
    """Once it is known how long the child takes to start, that is how long it may take to speak too early."""
    if limits.hold is not None or not results:
        return limits
    first = next(iter(results.values())).slowest or 0.0
    return replace(limits, hold=min(max(1.5 * first, SHORTEST_HOLD_S), LONGEST_HOLD_S))


def _left_out(case: Case, results: dict[str, CaseResult]) -> CaseResult | None:
    for name in case.needs:
        if name in results and results[name].verdict in (Verdict.FAIL, Verdict.SKIPPED):
            return CaseResult(case.name, case.title, (Finding(Verdict.SKIPPED, f"not tried: {name} failed"),))
    return None


def _without_repeats(result: CaseResult, results: dict[str, CaseResult]) -> CaseResult:
    """Without what an earlier case has said of the child."""
    said = {finding for earlier in results.values() for finding in earlier.findings if finding.once}
    return replace(result, findings=tuple(finding for finding in result.findings if finding not in said))


async def _tried(case: Case, options: Options, limits: Limits) -> CaseResult:
    """Start a child, take it through the case, and end it."""
    own = replace(limits, timeout=limits.timeout * case.patience, hold=limits.hold or UNKNOWN_HOLD_S)
    stage, talk = _started(options.child, own, case.held)
    life = _Life(case, options, own, stage, talk)
    began = stage.now()
    try:
        await life.live()
    finally:
        await stage.close(0.0 if life.failed else GRACE_S)
    took = stage.now() - began
    exchange = stage.transcript.lines() if life.failed else ()
    return CaseResult(case.name, case.title, tuple(life.findings), life.slowest, took, exchange)


def _started(child: ChildSettings, limits: Limits, held: Held | None) -> tuple[Stage, Talk]:
    environment = {SHARD_VARIABLE: SHARD, **_AS_A_SERVICE}
    if child.protocol in _FORMS:
        spelling, render = _FORMS[child.protocol]
        dialect = JsonLines(spelling)
        stage = Stage(Program(child.command, SHARD, environment=environment), dialect.receive, dialect.receive_eof)
        return stage, JsonLinesTalk(stage, dialect, render, limits, held)
    spoken = child.markers
    exchange = Exchange(spoken.markers, spoken.batching, batch_size=spoken.batch_size)
    arguments, variables = start_parameters(spoken)
    program = Program((*child.command, *arguments), SHARD, environment={**environment, **variables})
    stage = Stage(program, exchange.receive, lambda: None)  # a worker that is gone says more than its output's end
    return stage, MarkersTalk(stage, exchange, spoken.markers, spoken.batch_size, limits, held)


class _Life:
    """One child's way through a case."""

    def __init__(self, case: Case, options: Options, limits: Limits, stage: Stage, talk: Talk) -> None:
        self.findings: list[Finding] = []
        self.slowest: float | None = None
        self._case = case
        self._options = options
        self._limits = limits
        self._stage = stage
        self._talk = talk

    @property
    def failed(self) -> bool:
        return any(finding.verdict is Verdict.FAIL for finding in self.findings)

    async def live(self) -> None:
        """All steps, or as many as the child lives through."""
        for step in self._case.steps:
            heard = await self._taken(step)
            if heard is None or over(heard):
                return
        self.findings += judge_idle(self._case, await self._talk.idle())

    async def _taken(self, step: Step) -> Heard | None:
        own = self._options.samples.own
        match step, self._talk:
            case Call(), JsonLinesTalk() as talk:
                heard = await talk.ask(step)
                self.findings += judge_call(self._case, step, heard, self._limits.slow, own_samples=own)
            case Messages(), MarkersTalk() as talk:
                heard = await talk.ask(step)
                self.findings += judge_messages(self._case, step, heard, self._limits.slow, own_samples=own)
            case EndOfInput(), _:
                took = await self._stage.ends(self._limits.timeout)
                self.findings += judge_end(took, self._stage.status, self._limits.timeout)
                return None
            case _:
                raise ValueError(f"{step} is no step of this dialect")
        if not self._case.held:  # there, most of the time is Kainite's own waiting
            self.slowest = max(self.slowest or 0.0, heard.seconds)
        return heard

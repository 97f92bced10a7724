"""Judges the result of a step: makes findings, in the words of an author of record processors. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from kainite.base.checkpoint import SHARD_END
from kainite.child.events import Action
from kainite.child.markers.exchange import bad_message
from kainite.conform.cases.case import Case, Checkpointing, Extract, Messages, ScriptedCall, Step, Weight
from kainite.conform.exchange.checkpoint_answers import AnsweredCheckpoint
from kainite.conform.exchange.step_result import Reaction, StepResult
from kainite.conform.exchange.transcript import shown
from kainite.conform.report.extractions import judge_extraction
from kainite.conform.report.findings import CaseVerdict, Finding
from kainite.conform.report.loader_answers import judge_loader
from kainite.settings import OnDeath

_FAILURES: Final = {
    Reaction.EARLY: "wrote its answer before it had read its input, or one answer too many: {detail}",
    Reaction.HASTY: "answered {asked} before it had read the answer to its checkpoint: read one line after each"
    " request",
    Reaction.SILENT: "did not answer {asked} in {detail}; did it flush its standard output?",
    Reaction.UNREADABLE: "answered {asked} with what is no message: {detail}",
    Reaction.UNFINISHED: "wrote something for {asked}, but no EOP in {detail}: each answer ends with EOP",
    Reaction.NEEDS_EOM: "noticed EOB only when an EOM followed: act on EOB at once, nothing comes after it",
    Reaction.IGNORES_EOB: "did not answer {asked} in {detail} after EOB: EOB ends the batch, whatever its size; answer"
    " what has come, and write EOP",
    Reaction.NO_EMPTY_ANSWER: "wrote no EOP for an empty batch in {detail}: EOB alone is answered by EOP alone",
    Reaction.NO_BAD_ANSWER: "wrote no EOP for a message that is no record in {detail}: answer each message, a bad one"
    ' by {{"bad":"why"}} and EOP',
    Reaction.FLUSHED_LATE: "answered {asked} only when its input had ended, not in {detail}: flush the standard output"
    " after each answer, end it as the protocol says, and do not read ahead: a read of a fixed size, such as 64 KiB,"
    " waits for more than there is, so read a line, or what has come (read1, os.read, sysread)",
    Reaction.ENDLESS: "asks for checkpoints without end in {asked}: give up after some tries",
    Reaction.GONE: "{detail}",
    Reaction.VIOLATED: "{detail}",
}
_STOPS: Final = (
    "{detail}; one such record stops its shard for ever (markersOnDeath=retry): answer it by"
    ' {{"bad":"why"}} and EOP, or set markersOnDeath to tries, once or skip'
)
_TAKES_EOM: Final = "takes an EOM after EOB for a message; Kainite writes none there, other supervisors do"
_SHOWN: Final = 100


def judge_call(case: Case, call: ScriptedCall, result: StepResult, slow: float, *, own_samples: bool) -> list[Finding]:
    """Returns the findings about one call of a ``json-lines`` child.

    Args:
        case: the case that the call belongs to.
        call: the call.
        result: the call's result.
        slow: an answer that takes longer is a finding, seconds.
        own_samples: whether the payloads are the author's.
    """
    findings = [*_reaction(case, result, may_end=call.may_end), *_junk(case, result)]
    if result.reaction is Reaction.GONE and call.records:
        findings += _hint(case, own_samples=own_samples)
    if result.reaction is Reaction.ANSWERED:
        findings += [*_checkpoints(call, result), *_emitted(call, result), *_slow(case, call, result, slow)]
        findings += _rejects(case, result, own_samples=own_samples)
    return _weighed(case, findings)


def judge_messages(
    case: Case, step: Messages, result: StepResult, slow: float, *, own_samples: bool, on_death: OnDeath = OnDeath.SKIP
) -> list[Finding]:
    """Returns the findings about messages that were sent to a ``markers`` child; see :func:`judge_call`.

    ``on_death`` says what the daemon does with a message on which the child dies.
    """
    if step.eom_after_eob and _took_eom_for_message(result):
        return [Finding(CaseVerdict.NOTE, _TAKES_EOM, once=True)]
    if step.loading is not None and result.reaction is Reaction.ANSWERED:
        return [*judge_loader(step.loading, result), *_slow(case, step, result, slow)]
    if step.bad and result.reaction is Reaction.GONE and on_death is OnDeath.RETRY:
        return [Finding(CaseVerdict.FAIL, _STOPS.format(detail=result.detail))]
    findings = list(_reaction(case, result, may_end=False))
    if result.reaction is Reaction.ANSWERED:
        findings += [*_answers(case, step, result, own_samples=own_samples), *_slow(case, step, result, slow)]
        findings += _rejects(case, result, own_samples=own_samples)
    return _weighed(case, findings)


def judge_extract(case: Case, step: Extract, result: StepResult) -> list[Finding]:
    """Returns the findings about a cycle of an extractor, or a run of a plain one."""
    unfinished = step.request is None and result.reaction is Reaction.UNFINISHED
    findings = [] if unfinished else list(_reaction(case, result, may_end=False))
    if unfinished or result.reaction is Reaction.ANSWERED:
        findings += judge_extraction(step, result)
    return _weighed(case, findings)


def judge_idle(case: Case, result: StepResult | None) -> list[Finding]:
    """Returns the findings about what the child wrote after its last answer."""
    return [] if result is None or case.weight is Weight.OPTIONAL else list(_reaction(case, result, may_end=False))


def judge_end(took: float | None, status: int | None, limit: float) -> list[Finding]:
    """Returns the findings about the child's end.

    Args:
        took: seconds from the end of the child's input to the child's end; None if the child had to be killed.
        status: its exit status.
        limit: how long the child had for it, seconds.
    """
    if took is None:
        text = f"had not ended {limit:g} s after the end of its input: end when reading gives end of file"
        return [Finding(CaseVerdict.FAIL, text)]
    if status:
        text = f"ended with status {status} at the end of its input, where nothing is wrong"
        return [Finding(CaseVerdict.NOTE, text)]
    return []


def judge_arrangements(case: Case, given: Mapping[str, Counter[bytes]]) -> list[Finding]:
    """Returns the findings about the deltas that a child gave for the same records in each arrangement."""
    first, *others = case.arrangements
    wanted = given[first.name]
    for other in others:
        found = given[other.name]
        if wanted.total() != found.total():
            differs = next(iter([*(wanted - found), *(found - wanted)]))
            text = (
                f"gave {wanted.total()} deltas for records that came {first.name}, and {found.total()} for the same"
                f" records {other.name}, such as {shown(differs, _SHOWN)}: answer each record before the next"
            )
            return [Finding(CaseVerdict.FAIL, text)]
        if wanted != found and not other.renumbered:
            differs = next(iter(found - wanted))
            text = f"gives other deltas for the same records {other.name}, such as {shown(differs, _SHOWN)}: without an"
            return [Finding(CaseVerdict.NOTE, f"{text} ordinal, copies of a delta are recognised by being equal")]
    return []


def over(result: StepResult) -> bool:
    """Tells whether the child can be asked nothing more."""
    return result.reaction not in (Reaction.ANSWERED, Reaction.LEFT_OUT)


def _weighed(case: Case, findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings with each failure as a note where the daemon makes such a request only when told to."""
    if case.weight is not Weight.OPTIONAL:
        return list(findings)
    return [replace(each, verdict=CaseVerdict.NOTE) if each.verdict is CaseVerdict.FAIL else each for each in findings]


def _reaction(case: Case, result: StepResult, *, may_end: bool) -> Iterator[Finding]:
    template = _FAILURES.get(result.reaction)
    if template is None:
        return
    text = template.format(asked=result.asked, detail=result.detail)
    if result.reaction is Reaction.GONE and may_end:
        yield Finding(CaseVerdict.PASS, result.detail)
    elif result.reaction is Reaction.GONE and case.weight is Weight.REFUSABLE:
        yield Finding(CaseVerdict.NOTE, f"refused the payload: {text}")
    else:
        yield Finding(CaseVerdict.FAIL, text)


def _junk(case: Case, result: StepResult) -> Iterator[Finding]:
    if result.junk:
        text = f"printed a line that is no message: {result.junk[0]!r}; KCL skips it, write to standard error instead"
        yield Finding(CaseVerdict.FAIL, text) if case.strict_output else Finding(CaseVerdict.NOTE, text, once=True)


def _checkpoints(call: ScriptedCall, result: StepResult) -> Iterator[Finding]:
    asked = result.checkpoints
    for one in asked:
        if one.cause:
            yield _meaningless(result, one)
    match call.checkpoint:
        case Checkpointing.REQUIRED if not any(one.end for one in asked):
            yield Finding(CaseVerdict.FAIL, _no_end(result))
        case Checkpointing.FORBIDDEN if asked:
            yield Finding(CaseVerdict.FAIL, f"asked for a checkpoint in {result.asked}: the shard is another worker's"
                          " now, and the daemon answers InvalidStateException")  # fmt: skip
        case Checkpointing.WISE if not asked:
            yield Finding(CaseVerdict.NOTE, f"asked for no checkpoint in {result.asked}: what came since the last one"
                          " comes again")  # fmt: skip
    if call.action is Action.INITIALIZE and asked:
        yield Finding(CaseVerdict.NOTE, "asked for a checkpoint in initialize, where none can be had", once=True)
    if call.refuse and call.action is Action.SHARD_ENDED:
        yield _tries(len(asked), call.refuse.error.value)


def _meaningless(result: StepResult, one: AnsweredCheckpoint) -> Finding:
    number = one.request.sequence
    if one.error is None:
        return Finding(CaseVerdict.FAIL, f"asked in {result.asked} for a checkpoint at {number!r}: {one.cause}")
    text = f"asked in {result.asked} for a checkpoint that no daemon grants: {number!r}, told {one.error}"
    if number == SHARD_END.sequence:
        return Finding(CaseVerdict.NOTE, text, once=True)
    return Finding(CaseVerdict.FAIL, f"{text}; ask with the number of a record, as it was sent, or with none")


def _no_end(result: StepResult) -> str:
    if result.checkpoints:
        number = result.checkpoints[-1].request.sequence
        return f"checkpointed {number!r} in shardEnded, which is not the shard's end: ask without a number"
    return "asked for no checkpoint in shardEnded: the shard is never done, and those that follow it wait"


def _tries(tries: int, error: str) -> Finding:
    if not tries:
        return Finding(CaseVerdict.PASS, "asked for no checkpoint, so none failed")
    return Finding(CaseVerdict.PASS, f"asked {tries} times, told {error}" if tries > 1 else f"gave up after {error}")


def _emitted(call: ScriptedCall, result: StepResult) -> Iterator[Finding]:
    if result.emitted and call.action is not Action.PROCESS_RECORDS:
        yield Finding(CaseVerdict.FAIL, f"emitted in {result.asked}: emit only between processRecords and its status")


def _rejects(case: Case, result: StepResult, *, own_samples: bool) -> Iterator[Finding]:
    if result.rejects:
        verdict = CaseVerdict.FAIL if case.weight is Weight.REQUIRED else CaseVerdict.NOTE
        yield Finding(verdict, f"gave what is no delta, so its unit would fail: {result.rejects[0]}")
        yield from _hint(case, own_samples=own_samples)


def _slow(case: Case, step: Step, result: StepResult, slow: float) -> Iterator[Finding]:
    starting = step is case.steps[0] and case.needs  # the first case says how long the child takes to start
    failed = any(one.error for one in result.checkpoints)  # the child waited before it asked again, as it should
    if result.seconds > slow * case.patience and not (starting or case.held or failed):
        yield Finding(CaseVerdict.SLOW, f"took {result.seconds:.1f} s for {result.asked}")


def _hint(case: Case, *, own_samples: bool, verdict: CaseVerdict = CaseVerdict.FAIL) -> Iterator[Finding]:
    if not own_samples and not case.on_known_payloads:
        yield Finding(verdict, "if it takes certain payloads only, give it some: --records FILE")


def _answers(case: Case, step: Messages, result: StepResult, *, own_samples: bool) -> Iterator[Finding]:
    reports = [cause for message in result.messages if (cause := bad_message(message)) is not None]
    if step.bad:
        yield from _bad(result, reports)
    elif reports:
        yield Finding(CaseVerdict.NOTE, f"reported a bad message: {reports[0][:_SHOWN]}")
        yield from _hint(case, own_samples=own_samples, verdict=CaseVerdict.NOTE)


def _bad(result: StepResult, reports: list[str]) -> Iterator[Finding]:
    if reports:
        yield Finding(CaseVerdict.PASS, f"reported: {reports[0][:_SHOWN]}")
    elif not result.messages:
        yield Finding(CaseVerdict.NOTE, 'answered nothing, as if all were well: say {"bad":"why"} of a message that it'
                      " cannot read, or set markersOnEmptyAnswer=report")  # fmt: skip


def _took_eom_for_message(result: StepResult) -> bool:
    return result.reaction is not Reaction.ANSWERED or any(
        bad_message(message) is not None for message in result.messages
    )

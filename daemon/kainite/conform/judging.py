"""From what happened in a step to findings, in the words of somebody who writes a record processor. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kainite.child.events import Action
from kainite.child.markers.exchange import bad_message
from kainite.conform.findings import Finding, Verdict
from kainite.conform.heard import Heard, Outcome
from kainite.conform.script import Call, Case, Checkpointing, Messages, Step, Weight

_FAILURES: Final = {
    Outcome.EARLY: "wrote its answer before it had read its input, or one answer too many: {detail}",
    Outcome.HASTY: "answered {asked} before it had read the answer to its checkpoint: read one line after each request",
    Outcome.SILENT: "did not answer {asked} in {detail}; did it flush its standard output?",
    Outcome.UNFINISHED: "wrote something for {asked}, but no EOP in {detail}: each answer ends with EOP",
    Outcome.NEEDS_EOM: "noticed EOB only when an EOM followed: act on EOB at once, nothing comes after it",
    Outcome.FLUSHED_LATE: "answered {asked} only when its input had ended, not in {detail}: flush the standard output"
    " after each answer, end it as the protocol says, and do not read ahead",
    Outcome.ENDLESS: "asks for checkpoints without end in {asked}: give up after some tries",
    Outcome.GONE: "{detail}",
    Outcome.VIOLATED: "{detail}",
}
_TAKES_EOM: Final = "takes an EOM after EOB for a message; Kainite writes none there, other supervisors do"
_SHOWN: Final = 100


def judge_call(case: Case, call: Call, heard: Heard, slow: float, *, own_samples: bool) -> list[Finding]:
    """What is to be said about one call of a ``json-lines`` child.

    Args:
        case: whose step it is.
        call: what was asked.
        heard: what came of it.
        slow: an answer that takes longer is a finding, seconds.
        own_samples: the payloads are the author's.
    """
    findings = [*_outcome(case, heard, may_end=call.may_end), *_junk(case, heard)]
    if heard.outcome is Outcome.GONE and call.records:
        findings += _hint(case, own_samples=own_samples)
    if heard.outcome is Outcome.ANSWERED:
        findings += [*_checkpoints(call, heard), *_emitted(call, heard), *_slow(case, call, heard, slow)]
        findings += _rejects(case, heard, own_samples=own_samples)
    return findings


def judge_messages(case: Case, step: Messages, heard: Heard, slow: float, *, own_samples: bool) -> list[Finding]:
    """What is to be said about messages that were sent to a ``markers`` child; see :func:`judge_call`."""
    if step.eom_after_eob and _took_eom_for_message(heard):
        return [Finding(Verdict.NOTE, _TAKES_EOM, once=True)]
    findings = list(_outcome(case, heard, may_end=False))
    if heard.outcome is Outcome.ANSWERED:
        findings += [*_answers(case, step, heard, own_samples=own_samples), *_slow(case, step, heard, slow)]
        findings += _rejects(case, heard, own_samples=own_samples)
    return findings


def judge_idle(case: Case, heard: Heard | None) -> list[Finding]:
    """What it said when nothing was asked of it any more."""
    return [] if heard is None or case.weight is Weight.OPTIONAL else list(_outcome(case, heard, may_end=False))


def judge_end(took: float | None, status: int | None, limit: float) -> list[Finding]:
    """Whether it ended when its input did; ``took`` is None when it had to be killed."""
    if took is None:
        return [Finding(Verdict.FAIL, f"had not ended {limit:g} s after the end of its input: end when reading gives"
                        " end of file")]  # fmt: skip
    if status:
        return [Finding(Verdict.NOTE, f"ended with status {status} at the end of its input, where nothing is wrong")]
    return []


def over(heard: Heard) -> bool:
    """Nothing more can be asked of this child."""
    return heard.outcome not in (Outcome.ANSWERED, Outcome.LEFT_OUT)


def _outcome(case: Case, heard: Heard, *, may_end: bool) -> Iterator[Finding]:
    template = _FAILURES.get(heard.outcome)
    if template is None:
        return
    text = template.format(asked=heard.asked, detail=heard.detail)
    if heard.outcome is Outcome.GONE and may_end:
        yield Finding(Verdict.PASS, heard.detail)
    elif heard.outcome is Outcome.GONE and case.weight is Weight.REFUSABLE:
        yield Finding(Verdict.NOTE, f"refused the payload: {text}")
    else:
        yield Finding(Verdict.NOTE if case.weight is Weight.OPTIONAL else Verdict.FAIL, text)


def _junk(case: Case, heard: Heard) -> Iterator[Finding]:
    if heard.junk:
        text = f"printed a line that is no message: {heard.junk[0]!r}; KCL skips it, write to standard error instead"
        yield Finding(Verdict.FAIL, text) if case.strict_output else Finding(Verdict.NOTE, text, once=True)


def _checkpoints(call: Call, heard: Heard) -> Iterator[Finding]:
    asked = heard.checkpoints
    for one in asked:
        if one.cause:
            yield Finding(Verdict.NOTE, f"asked in {heard.asked} for a checkpoint that no daemon grants:"
                          f" {one.request.sequence!r}, told {one.error}", once=True)  # fmt: skip
    match call.checkpoint:
        case Checkpointing.REQUIRED if not any(one.end for one in asked):
            yield Finding(Verdict.FAIL, _no_end(heard))
        case Checkpointing.FORBIDDEN if asked:
            yield Finding(Verdict.FAIL, f"asked for a checkpoint in {heard.asked}: the shard is another worker's now,"
                          " and the daemon answers InvalidStateException")  # fmt: skip
        case Checkpointing.WISE if not asked:
            yield Finding(Verdict.NOTE, f"asked for no checkpoint in {heard.asked}: what came since the last one comes"
                          " again")  # fmt: skip
    if call.action is Action.INITIALIZE and asked:
        yield Finding(Verdict.NOTE, "asked for a checkpoint in initialize, where none can be had", once=True)
    if call.refuse and call.action is Action.SHARD_ENDED:
        yield _tries(len(asked), call.refuse.error.value)


def _no_end(heard: Heard) -> str:
    if heard.checkpoints:
        number = heard.checkpoints[-1].request.sequence
        return f"checkpointed {number!r} in shardEnded, which is not the shard's end: ask without a number"
    return "asked for no checkpoint in shardEnded: the shard is never done, and those that follow it wait"


def _tries(tries: int, error: str) -> Finding:
    if not tries:
        return Finding(Verdict.PASS, "asked for no checkpoint, so none failed")
    return Finding(Verdict.PASS, f"asked {tries} times, told {error}" if tries > 1 else f"gave up after {error}")


def _emitted(call: Call, heard: Heard) -> Iterator[Finding]:
    if heard.emitted and call.action is not Action.PROCESS_RECORDS:
        yield Finding(Verdict.FAIL, f"emitted in {heard.asked}: emit only between processRecords and its status")


def _rejects(case: Case, heard: Heard, *, own_samples: bool) -> Iterator[Finding]:
    if heard.rejects:
        verdict = Verdict.FAIL if case.weight is Weight.REQUIRED else Verdict.NOTE
        yield Finding(verdict, f"gave what is no delta, so its unit would fail: {heard.rejects[0]}")
        yield from _hint(case, own_samples=own_samples)


def _slow(case: Case, step: Step, heard: Heard, slow: float) -> Iterator[Finding]:
    starting = step is case.steps[0] and case.needs  # how long it takes to start is said in the first case
    failed = any(one.error for one in heard.checkpoints)  # then it waited before it asked again, and should
    if heard.seconds > slow * case.patience and not (starting or case.held or failed):
        yield Finding(Verdict.SLOW, f"took {heard.seconds:.1f} s for {heard.asked}")


def _hint(case: Case, *, own_samples: bool, verdict: Verdict = Verdict.FAIL) -> Iterator[Finding]:
    if not own_samples and not case.on_known_payloads:
        yield Finding(verdict, "if it takes certain payloads only, give it some: --records FILE")


def _answers(case: Case, step: Messages, heard: Heard, *, own_samples: bool) -> Iterator[Finding]:
    reports = [cause for message in heard.messages if (cause := bad_message(message)) is not None]
    if step.bad:
        yield from _bad(heard, reports)
    elif reports:
        yield Finding(Verdict.NOTE, f"reported a bad message: {reports[0][:_SHOWN]}")
        yield from _hint(case, own_samples=own_samples, verdict=Verdict.NOTE)


def _bad(heard: Heard, reports: list[str]) -> Iterator[Finding]:
    if reports:
        yield Finding(Verdict.PASS, f"reported: {reports[0][:_SHOWN]}")
    elif not heard.messages:
        yield Finding(Verdict.NOTE, 'answered nothing, as if all were well: say {"bad":"why"} of a message that it'
                      " cannot read")  # fmt: skip


def _took_eom_for_message(heard: Heard) -> bool:
    return heard.outcome is not Outcome.ANSWERED or any(bad_message(message) is not None for message in heard.messages)

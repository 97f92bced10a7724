"""Judges the answers of a loader (docs/targets.md, *Requests and answers*): makes findings. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kainite.conform.cases.case import Loading
from kainite.conform.cases.read_back import LoadedRow
from kainite.conform.exchange.step_result import StepResult
from kainite.conform.exchange.transcript import shown
from kainite.conform.report.findings import CaseVerdict, Finding
from kainite.uow import exact_json

_ANSWERS: Final = ("applied", "trimmed", "rows", "bad", "retry", "fenced")
_SHOWN: Final = 100


def judge_loader(loading: Loading, result: StepResult) -> Iterator[Finding]:
    """Yields the findings about the answer to one request."""
    said: dict[str, Any] = {}
    for message in result.messages:
        found = _answer(message)
        if found is None:
            text = f"answered {shown(message, _SHOWN)}, which is no answer of a loader: answer nothing, or one of"
            yield Finding(CaseVerdict.FAIL, f"{text} {', '.join(_ANSWERS)} (docs/targets.md)")
            return
        said |= found
    for refusal in ("bad", "retry"):
        if refusal in said:
            yield Finding(CaseVerdict.NOTE, f"answered {refusal!r}: {str(said[refusal])[:_SHOWN]}; the unit is made up")
            return
    if loading.outranked:
        yield from _fence(said)
    elif "fenced" in said:
        yield Finding(CaseVerdict.FAIL, f"fenced the newest apply job off: {str(said['fenced'])[:_SHOWN]}")
    if loading.asked:
        yield from _applied(loading, said.get("applied"))
    if loading.rows and "rows" in said:
        yield from _read_back(loading.rows, said["rows"])


def refused(result: StepResult) -> bool:
    """Tells whether a loader has refused a request, or put it off: nothing of the request is loaded."""
    return any(not {"bad", "retry"}.isdisjoint(_answer(message) or ()) for message in result.messages)


def _answer(message: bytes) -> dict[str, Any] | None:
    try:
        found = exact_json.loads(message)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and len(found) == 1 and found.keys() <= set(_ANSWERS) else None


def _fence(said: dict[str, Any]) -> Iterator[Finding]:
    if "fenced" not in said:
        text = (
            "loaded a unit for an apply job that another one has replaced: without a fence a unit may be loaded twice"
        )
        yield Finding(CaseVerdict.NOTE, f"{text} (docs/targets.md, *Fence*)", once=True)


def _read_back(wanted: Sequence[LoadedRow], found: object) -> Iterator[Finding]:
    if not isinstance(found, list) or len(found) != len(wanted):
        text = f"answered {len(wanted)} keys with {str(found)[:_SHOWN]}: answer a list, for each key a row or null"
        yield Finding(CaseVerdict.FAIL, text)
        return
    for row, back in zip(wanted, found, strict=True):
        name = f"{row.table} {json.dumps(dict(row.key), default=str)}"
        if not isinstance(back, dict):
            yield Finding(CaseVerdict.FAIL, f"does not have the row {name}, which it has loaded")
            continue
        for column, value in row.row.items():
            if column not in back:
                yield Finding(CaseVerdict.FAIL, f"lost the column {column!r} of {name}")
            elif (before := _spelled(value)) != (after := _spelled(back[column])):
                yield Finding(CaseVerdict.NOTE, f"{name}: {column!r} was loaded as {before} and came back as {after}")


def _spelled(value: object) -> str:
    """Returns a value in JSON, every digit of a number as it was written."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)[:_SHOWN]


def _applied(loading: Loading, found: object) -> Iterator[Finding]:
    if not isinstance(found, list) or not all(type(each) is int for each in found):
        if found is not None:
            yield Finding(CaseVerdict.FAIL, f"listed as applied what are no transaction ids: {str(found)[:_SHOWN]}")
        elif loading.loaded:
            text = "keeps no account of what is loaded: a unit may come again after a crash"
            yield Finding(CaseVerdict.NOTE, f"{text} (docs/targets.md)", once=True)
        return
    if extra := set(found) - loading.loaded:
        yield Finding(
            CaseVerdict.FAIL, f"lists units as applied that it was not sent: {sorted(extra)}; they would be lost"
        )
    elif missing := loading.loaded - set(found):
        text = f"does not list {sorted(missing)} as applied, though it has loaded them: they would be loaded again"
        yield Finding(CaseVerdict.FAIL, text)

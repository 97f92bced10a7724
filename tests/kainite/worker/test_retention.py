"""The stream's retention: asked for once a day, again where Kinesis does not answer, and no more where it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.observe.meter import Meter
from kainite.observe.metric import STREAM_RETENTION
from kainite.worker.retention import tell_retention
from support.metric_sums import Sums
from support.waiting import until

NEVER_S = 1_000.0


@dataclass
class Answers:
    """A stream that gives these answers one after the other."""

    answers: Iterator[float | StreamError]

    def retention(self) -> float:
        answer = next(self.answers)
        if isinstance(answer, StreamError):
            raise answer
        return answer


async def test_a_role_that_may_not_ask_is_not_asked_again() -> None:
    sums = Sums()
    stream = Answers(iter([StreamError("refused")]))
    await asyncio.wait_for(tell_retention(stream, Meter(sums)), 30)
    assert not sums.seen


async def test_a_question_without_an_answer_is_asked_again_soon() -> None:
    sums = Sums()
    stream = Answers(iter([StreamUnavailableError("throttled"), 86_400.0]))
    telling = asyncio.create_task(tell_retention(stream, Meter(sums), every=NEVER_S, again=0.0))
    await until(lambda: STREAM_RETENTION in sums.seen)
    telling.cancel()
    assert sums.values[STREAM_RETENTION] == 86_400_000


async def test_a_retention_that_is_changed_is_noticed() -> None:
    sums = Sums()
    stream = Answers(iter([86_400.0, 604_800.0, StreamError("refused")]))
    await asyncio.wait_for(tell_retention(stream, Meter(sums), every=0.0, again=NEVER_S), 30)
    assert sums.seen[STREAM_RETENTION] == 2
    assert sums.values[STREAM_RETENTION] == 604_800_000

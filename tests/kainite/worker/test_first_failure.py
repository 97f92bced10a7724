from __future__ import annotations

import pytest

from kainite.base.errors import KainiteError, LogFencedError, LogHeldError, StreamError
from kainite.worker.first_failure import raise_first

FENCED, HELD, STREAM, OTHER = LogFencedError("fenced"), LogHeldError("held"), StreamError("gone"), OSError("other")


@pytest.mark.parametrize(
    ("failures", "raised"),
    [
        ([FENCED], FENCED),
        ([OTHER, FENCED, STREAM], FENCED),
        ([OTHER], OTHER),
        ([ExceptionGroup("inner", [OTHER, ExceptionGroup("innermost", [STREAM])]), FENCED], STREAM),
    ],
)
def test_the_first_error_of_kainite_is_raised(failures: list[Exception], raised: Exception) -> None:
    with pytest.raises(type(raised)) as caught:
        raise_first(ExceptionGroup("tasks", failures), unless=LogHeldError)
    assert caught.value is raised


def test_an_excepted_error_is_not_raised() -> None:
    failures: list[KainiteError] = [HELD, STREAM]
    raise_first(ExceptionGroup("tasks", failures), unless=LogHeldError)

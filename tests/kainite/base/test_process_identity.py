"""A process is provably gone only when this host can tell; everything else counts as alive."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.process_identity import ProcessIdentity, from_text, start_time, this_process

HERE = this_process()
CHILD = "from kainite.base.process_identity import this_process; print(this_process().as_text(), flush=True); input()"


def test_this_process_has_one_identity_and_is_not_gone() -> None:
    assert this_process() is HERE
    assert not HERE.is_gone(HERE)
    assert (HERE.pid, HERE.started) == (os.getpid(), start_time(os.getpid()))


def test_a_killed_process_is_gone_before_and_after_its_parent_notices() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        identity = from_text(child.stdout.readline().decode())
        assert identity is not None
        assert not identity.is_gone(HERE)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and still a zombie
        assert identity.is_gone(HERE)
    assert identity.is_gone(HERE)


def test_a_process_id_that_another_process_has_now() -> None:
    assert replace(HERE, started=HERE.started + 1).is_gone(HERE)


@pytest.mark.parametrize(
    "unknown",
    [{"boot": "another"}, {"boot": ""}, {"namespaces": "another"}, {"namespaces": ""}, {"pid": 0}, {"started": 0}],
)
def test_nothing_is_proven_of_what_cannot_be_compared(unknown: dict[str, str | int]) -> None:
    gone = replace(HERE, started=HERE.started + 1)
    assert not replace(gone, **unknown).is_gone(HERE)  # type: ignore[arg-type]


def test_init_is_alive_though_it_may_not_be_signalled() -> None:
    assert not replace(HERE, pid=1, started=start_time(1) or 1).is_gone(HERE)


def test_texts() -> None:
    assert from_text(HERE.as_text()) == HERE
    assert str(HERE) == f"process {os.getpid()} on {HERE.host}"
    assert str(ProcessIdentity("x")) == "process x"


@given(st.text(max_size=20) | st.sampled_from(["null", "[]", "{}", "1", '{"token": 1}']))
def test_other_texts_are_no_identity(text: str) -> None:
    assert from_text(text) is None

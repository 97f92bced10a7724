"""The cases of KCL's ShardRecordProcessorCheckpointer (docs/kcl.md, *Checkpoints*)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.checkpoint import LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import KainiteError, LeaseLostError, LeaseTableError, LeaseTableUnavailableError, StreamError
from kainite.leases.holding.checkpoint_requests import (
    CheckpointErrorName,
    CheckpointRequest,
    Grant,
    Refusal,
    decide_checkpoint,
    error_name,
)

TEN, FIFTEEN, TWENTY = Checkpoint("10"), Checkpoint("15"), Checkpoint("20")
ALL = CheckpointRequest()


def test_without_a_number_it_is_the_last_record_delivered() -> None:
    assert decide_checkpoint(ALL, TEN, TWENTY) == Grant(TWENTY, write=True)


@pytest.mark.parametrize("last", [TEN, LATEST, TRIM_HORIZON])
def test_before_any_record_there_is_nothing_to_store(last: Checkpoint) -> None:
    assert decide_checkpoint(ALL, last, None) == Grant(last, write=False)
    assert decide_checkpoint(CheckpointRequest(last.sequence), last, None) == Grant(last, write=False)


def test_at_the_end_of_an_empty_shard_it_is_shard_end() -> None:
    assert decide_checkpoint(ALL, TRIM_HORIZON, None, ended=True) == Grant(SHARD_END, write=True)


def test_shard_end_by_name_is_for_the_shards_end_only() -> None:
    named = CheckpointRequest("SHARD_END")
    assert isinstance(decide_checkpoint(named, TEN, TWENTY), Refusal)
    assert decide_checkpoint(named, TEN, TWENTY, ended=True) == Grant(SHARD_END, write=True)
    assert decide_checkpoint(named, SHARD_END, TWENTY, ended=True) == Grant(SHARD_END, write=False)


@pytest.mark.parametrize(
    ("sequence", "sub"),
    [("9", None), ("21", None), ("20", 1), ("10", -1), ("", None), ("x", None), ("LATEST", None), ("TRIM_HORIZON", 0)],
)
def test_what_lies_outside_or_is_no_number_is_an_illegal_argument(sequence: str, sub: int | None) -> None:
    refused = decide_checkpoint(CheckpointRequest(sequence, sub), TEN, TWENTY)
    assert isinstance(refused, Refusal)
    assert refused.error == "IllegalArgumentException"
    assert refused.cause


def test_the_stored_checkpoint_again_is_no_write() -> None:
    assert decide_checkpoint(CheckpointRequest("10"), TEN, TWENTY) == Grant(TEN, write=False)
    assert decide_checkpoint(CheckpointRequest("10", 0), TEN, None) == Grant(TEN, write=False)


def test_a_record_inside_an_aggregate() -> None:
    largest = Checkpoint("20", 5)
    assert decide_checkpoint(CheckpointRequest("20", 3), TEN, largest) == Grant(Checkpoint("20", 3), write=True)
    assert isinstance(decide_checkpoint(CheckpointRequest("20", 2), Checkpoint("20", 3), largest), Refusal)


@pytest.mark.parametrize("last", [TEN, TWENTY])
def test_at_the_end_the_last_records_number_means_shard_end_even_if_it_is_stored_already(last: Checkpoint) -> None:
    assert decide_checkpoint(CheckpointRequest("20"), last, TWENTY, ended=True) == Grant(SHARD_END, write=True)


def test_at_the_end_the_number_of_the_last_aggregate_alone_means_shard_end_too() -> None:
    largest = Checkpoint("20", 5)
    assert decide_checkpoint(CheckpointRequest("20"), TEN, largest, ended=True) == Grant(SHARD_END, write=True)
    assert decide_checkpoint(CheckpointRequest("20", 0), TEN, largest, ended=True) == Grant(TWENTY, write=True)


def test_at_the_end_an_earlier_record_is_stored_as_asked() -> None:
    assert decide_checkpoint(CheckpointRequest("15"), TEN, TWENTY, ended=True) == Grant(FIFTEEN, write=True)


@given(
    st.builds(CheckpointRequest, st.none() | st.integers(0, 40).map(str), st.none() | st.integers(0, 3)),
    st.integers(0, 40).map(lambda n: Checkpoint(str(n))) | st.sampled_from([TRIM_HORIZON, LATEST]),
    st.none() | st.integers(0, 40).map(lambda n: Checkpoint(str(n))),
    st.booleans(),
)
def test_what_is_granted_never_goes_back_nor_beyond_what_was_delivered(
    request: CheckpointRequest, last: Checkpoint, largest: Checkpoint | None, ended: bool
) -> None:
    judged = decide_checkpoint(request, last, largest, ended=ended)
    if isinstance(judged, Grant):
        assert last <= judged.checkpoint
        assert judged.write == (judged.checkpoint != last)
        assert ended or judged.checkpoint <= max(last, largest or last)
    else:
        assert judged.error is CheckpointErrorName.ILLEGAL_ARGUMENT


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (LeaseLostError("x"), "ShutdownException"),
        (LeaseTableUnavailableError("x"), "ThrottlingException"),
        (LeaseTableError("x"), "InvalidStateException"),
        (StreamError("x"), "KinesisClientLibDependencyException"),
    ],
)
def test_what_a_child_is_told_when_storing_fails(error: KainiteError, name: str) -> None:
    assert error_name(error) == name

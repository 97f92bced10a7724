"""Nothing that reads bytes from outside crashes, hangs or takes memory without a limit, whatever the bytes are.

``make test`` tries some hundred inputs for each reader, ``make fuzz INPUTS=n`` n inputs. A failure names the input; it
comes again with ``READERS[name].read(bytes.fromhex(…))``.
"""

from __future__ import annotations

import os
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.mutation import mutated
from fuzz.readers import READERS, Reader
from kainite.base.compression import compressed
from kainite.base.errors import LogCorruptError
from kainite.log.format.batch_codec import MAGIC, decode

PORTION = 100
INPUTS = int(os.environ.get("KAINITE_FUZZ_INPUTS", "500"))
SLOWEST_S = 5.0
"""A reading that takes longer hangs. It is processor time: the machine's load does not count."""


def attempt(reader: Reader, data: bytes) -> None:
    begun = time.process_time()
    try:
        reader.read(data)
    except reader.errors:
        pass
    except BaseException as error:
        error.add_note(f"input: {data.hex()}")
        raise
    took = time.process_time() - begun
    assert took < SLOWEST_S, f"{took:.1f} s for input: {data.hex()}"


@pytest.mark.timeout(0 if INPUTS > 5_000 else 120)
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=max(1, INPUTS // PORTION), database=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**62))
def test_broken_input_is_a_documented_error(name: str, seed: int) -> None:
    for data in mutated(READERS[name].samples, seed, PORTION):
        attempt(READERS[name], data)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=25, database=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_documented_error(name: str, data: bytes) -> None:
    attempt(READERS[name], data)


@pytest.mark.parametrize("name", READERS)
def test_the_samples_are_read(name: str) -> None:
    for sample in READERS[name].samples:
        attempt(READERS[name], sample)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("piece", [b"[", b"9", b"\n", b"\0"])
def test_memory_and_time_of_a_repeated_piece_are_bounded(name: str, piece: bytes) -> None:
    data = piece * (20_000 // len(piece))
    tracemalloc.start()
    try:
        attempt(READERS[name], data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000_000


def test_a_batch_that_says_it_is_huge_takes_no_memory() -> None:
    bomb = compressed(bytes(4 << 20), 19)
    with pytest.raises(LogCorruptError):
        decode(MAGIC + bomb, None)

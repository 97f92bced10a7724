"""Makes broken inputs out of sound ones, by a seed: the same seed gives the same inputs, on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

MOST_BYTES: Final = 20_000
_SNIPPETS: Final = (
    b"\x00", b"\xff", b"\n", b"\r\n", b"\x1b[2J", b"\xed\xa0\x80", b"\xf0\x9f", b"{", b"}", b"[", b"]" * 3, b'"', b"\\",
    b"\\u", b"\\ud800", b"null", b"true", b"-1", b"1e999", b"1E-999999999999", b"NaN", b"9" * 25, b"9" * 5_000,
    b"1e99999999999999999999", b"1E-99999999999999999999", b"0.1" * 9,
    b"[" * 1_000 + b"12345678901234567.89" + b"]" * 1_000,
    b"[" * 300, b'{"a":' * 300, b"[" * 1_500, b"\x7f\xff\xff\xff", b"\xff" * 8, b"\x80" * 12, b"%zz", b"\xe2\x80\xa8",
)  # fmt: skip


def mutated(samples: Sequence[bytes], seed: int, count: int) -> Iterator[bytes]:
    """Yields ``count`` inputs; each is one of the samples after one to eight changes, or random bytes."""
    random = Random(seed)
    for _ in range(count):
        data = bytearray(random.choice(samples))
        if random.random() < 0.02:
            data = bytearray(random.randbytes(random.randrange(200)))
        for _ in range(random.choice((1, 1, 2, 3, 8))):
            random.choice(_CHANGES)(random, data, samples)
        yield bytes(data[:MOST_BYTES])


def _place(random: Random, data: bytearray) -> int:
    return random.randrange(len(data) + 1)


def _flip(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _overwrite(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    at, snippet = _place(random, data), random.choice(_SNIPPETS)
    data[at : at + len(snippet)] = snippet


def _insert(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    at = _place(random, data)
    data[at:at] = random.choice(_SNIPPETS)


def _delete(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    at = _place(random, data)
    del data[at : at + random.choice((1, 1, 2, 8, 64))]


def _repeat(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    at = _place(random, data)
    data[at:at] = data[at : at + random.choice((1, 4, 32))] * random.randrange(1, 40)


def _splice(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    other = random.choice(samples)
    cut = random.randrange(len(other) + 1)
    data[_place(random, data) :] = other[cut:]


def _truncate(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    del data[_place(random, data) :]


def _digits(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    """Changes a number, where there is one: lengths and counts are written as digits in text formats."""
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        at = random.choice(places)
        data[at : at + 1] = random.choice((b"0", b"-1", b"1.5", b"9" * 18, b"9" * 20, b'"x"', b"null", b"[]", b"{}"))


_CHANGES: Final[tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...]] = (
    _flip, _flip, _overwrite, _insert, _delete, _repeat, _splice, _truncate, _digits, _digits,
)  # fmt: skip

"""A checkpoint: how far a shard has been processed, as KCL stores and orders it.

``AT_TIMESTAMP`` < ``TRIM_HORIZON`` < ``LATEST`` < every sequence number < ``SHARD_END`` (KCL's
``ExtendedSequenceNumber``; docs/kcl.md, *Checkpoints*). Within one sequence number the records
of a KPL aggregate follow each other by sub-sequence number.
"""

from __future__ import annotations

from dataclasses import dataclass

from kainite.base.position import Position

MAX_DIGITS = 128
"""The digits of Kinesis's longest sequence number."""

_BEFORE_ALL = {"AT_TIMESTAMP": -3, "TRIM_HORIZON": -2, "LATEST": -1}
_SHARD_END = "SHARD_END"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A sequence number in decimal digits, or a sentinel; and which record of an aggregate.

    Digits are stored without leading zeros, so that equal checkpoints compare equal.

    Raises:
        ValueError: neither digits nor a sentinel, or ``sub`` is negative.
    """

    sequence: str
    sub: int = 0

    def __post_init__(self) -> None:
        if self.sub < 0:
            raise ValueError(f"sub-sequence number {self.sub} is negative")
        if self.is_sentinel:
            return
        if not is_sequence_number(self.sequence):
            raise ValueError(f"{self.sequence[:80]!r} is neither a sequence number nor a sentinel")
        object.__setattr__(self, "sequence", str(int(self.sequence)))

    @classmethod
    def at(cls, position: Position) -> Checkpoint:
        return cls(str(position.sequence), position.sub)

    @property
    def is_sentinel(self) -> bool:
        return self.sequence in _BEFORE_ALL or self.sequence == _SHARD_END

    @property
    def position(self) -> Position | None:
        """Returns the place in the shard; None for a sentinel."""
        return None if self.is_sentinel else Position(int(self.sequence), self.sub)

    def _rank(self) -> tuple[int, int, int]:
        if self.sequence == _SHARD_END:
            return (1, 0, self.sub)
        value = _BEFORE_ALL.get(self.sequence)
        return (0, int(self.sequence) if value is None else value, self.sub)

    def __lt__(self, other: Checkpoint) -> bool:
        return self._rank() < other._rank()

    def __le__(self, other: Checkpoint) -> bool:
        return self._rank() <= other._rank()

    def __str__(self) -> str:
        return self.sequence if self.is_sentinel or not self.sub else f"{self.sequence}.{self.sub}"


TRIM_HORIZON = Checkpoint("TRIM_HORIZON")
LATEST = Checkpoint("LATEST")
AT_TIMESTAMP = Checkpoint("AT_TIMESTAMP")
SHARD_END = Checkpoint(_SHARD_END)


def is_sequence_number(text: str) -> bool:
    """Tells whether ``text`` is a Kinesis sequence number: 1 to 128 ASCII digits."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS

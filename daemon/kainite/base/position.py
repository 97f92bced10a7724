"""A place in a shard."""

from __future__ import annotations

from typing import Final

from kainite.base.value_class import value_class


@value_class(frozen=True, slots=True, order=True)
class Position:
    """A place in a shard: a Kinesis sequence number and, inside a KPL aggregate, which record.

    Sequence numbers are decimal strings of any length in Kinesis; here they are integers so that
    they compare as Kinesis orders them.
    """

    sequence: int
    sub: int = 0

    def __str__(self) -> str:
        """Returns the sequence number, and after a dot the record inside an aggregate unless it is the first."""
        return f"{self.sequence}.{self.sub}" if self.sub else str(self.sequence)


BEFORE_ALL: Final = Position(0)
"""Before each record of a shard."""

"""Picks the one error that explains why a group of tasks ended."""

from __future__ import annotations

from kainite.base.errors import KainiteError


def raise_first(failures: BaseExceptionGroup, *, unless: type[KainiteError]) -> None:
    """Raises the first error of Kainite in a group; if there is none, the group's first error.

    The first one is the cause: it cancels the other tasks, and their errors follow from that.

    Args:
        failures: the errors that a task group raised, nested groups included.
        unless: an error of this type is not raised.
    """
    flat = _flatten(failures)
    first = next((error for error in flat if isinstance(error, KainiteError)), flat[0])
    if not isinstance(first, unless):
        raise first


def _flatten(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [inner for part in error.exceptions for inner in _flatten(part)]
    return [error]

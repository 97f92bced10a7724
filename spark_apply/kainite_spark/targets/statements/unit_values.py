"""What Python raises about a unit's values while statements are made of them: that unit's fault, and no other's.

The values come from outside, and no list has all that may be wrong with them: half a surrogate pair, an object nested
too deeply for any writer, a number that no conversion takes. So the errors that Python raises about *values* refuse the
group, and the caller cuts it until the unit at fault stands alone. Any other error (``AttributeError``, ``KeyError``,
``AssertionError`` …) is a mistake of Kainite's, which may hit every unit: it ends the apply job, and no unit fails for
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kainite.base.errors import TargetRejectedError
from kainite.base.redaction import redacted

_ABOUT_VALUES: Final = (ValueError, TypeError, ArithmeticError, RecursionError)
_SHOWN: Final = 500


@contextmanager
def values_refused() -> Iterator[None]:
    """Raises TargetRejectedError for an error about values."""
    try:
        yield
    except _ABOUT_VALUES as error:
        text = " ".join(str(error).split())[:_SHOWN]
        raise TargetRejectedError(redacted(f"a value cannot be sent: {type(error).__name__}: {text}")) from error

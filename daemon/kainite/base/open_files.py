"""Recognises in any error that a process, or its host, has too few open files (``ulimit -n``), and says so.

A process that may open no more files cannot connect either, and libraries then say that the endpoint is not reached.
The error from the system stands among the causes of theirs, so it is looked for there. Pure, but for the limit that the
text names.
"""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator


def advice_on(error: BaseException) -> str | None:
    """Returns what to do about an error that comes from too few open files; None for any other error."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno == errno.EMFILE:
            return (
                f"this process has all of its {limit()} files and connections open (ulimit -n): raise the limit"
                " (LimitNOFILE= in a systemd unit), or give the process fewer shards"
            )
        if isinstance(cause, OSError) and cause.errno == errno.ENFILE:
            return "this host has all of its files open, of all processes together: raise fs.file-max (sysctl)"
    return None


def limit() -> int:
    """Returns how many files and connections this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, and those that led to it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting += [found.__cause__, found.__context__, *_inner(found)]


def _inner(error: BaseException) -> tuple[BaseException, ...]:
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions
    # urllib3 and botocore hand errors on as arguments.
    return tuple(value for value in (*error.args, getattr(error, "reason", None)) if isinstance(value, BaseException))

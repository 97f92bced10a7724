"""``kainite run`` that kills itself with SIGKILL just before or after an effect: ``mortal_daemon.py EFFECT SETTINGS``.

EFFECT is ``before`` or ``after``, and ``append``, ``checkpoint`` or ``fork``; the first one counts.
Everything is real; the process kills itself beside one of the calls by which a daemon changes durable state.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from kainite import settings
from kainite.leases.table.lease_table import LeaseTable
from kainite.store.dynamodb import DynamoDBStore
from kainite.worker.supervisor import run

P = ParamSpec("P")
T = TypeVar("T")


def mortal(effect: str, name: str, act: Callable[P, T]) -> Callable[P, T]:
    def acted(*args: P.args, **kwargs: P.kwargs) -> T:
        if effect == f"before {name}":
            os.kill(os.getpid(), signal.SIGKILL)
        result = act(*args, **kwargs)
        if effect == f"after {name}":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return acted


def main(effect: str, path: str) -> None:
    DynamoDBStore.put_batch = mortal(effect, "append", DynamoDBStore.put_batch)  # type: ignore[method-assign]
    DynamoDBStore.put_fork = mortal(effect, "fork", DynamoDBStore.put_fork)  # type: ignore[method-assign]
    LeaseTable.checkpoint = mortal(effect, "checkpoint", LeaseTable.checkpoint)  # type: ignore[method-assign]
    run(settings.load(Path(path)))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Safeguards of what takes long to compute, and how soon the schedules notice in which computing takes time."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from simulation.mutation import Mutation, value


@contextlib.asynccontextmanager
async def _no_heartbeats(*_: Any) -> AsyncIterator[None]:
    yield


OF_LONG_WORK: tuple[Mutation, ...] = (
    Mutation("heartbeats while the log is read", "kainite.owner.loading:heartbeats_meanwhile", value(_no_heartbeats),
             20, aim="long"),
)  # fmt: skip

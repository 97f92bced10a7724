"""Measures how long a change of the log's owner takes.

Three members in processes of their own share a log in moto's DynamoDB. The benchmark ends the owner again and again,
and measures the time until another member, now the owner, has answered a question on a new connection. Before the next
round another member joins.

=========  ==========================================  ================================================================
way        the owner                                   the others know by
=========  ==========================================  ================================================================
kill       SIGKILL; its host lives                     its connections end, its port refuses
stop       SIGTERM: it releases the log                HEAD
away       SIGSTOP: its host says nothing any more     nothing: its lease runs out (10 s), so a tenth of the times
=========  ==========================================  ================================================================

    python benchmarks/failover.py [--kills N] [--ways WAY ...] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from runs.machine import warn_unless_quiet

from kainite.base.errors import KainiteError
from kainite.base.process_identity import this_process
from kainite.peers.access import LOG_USER, Access
from kainite.peers.address import OwnerAddress, reached_by
from kainite.peers.sharing.connection import OwnerConnection, connected
from kainite.peers.sharing.conversation import MemberName
from kainite.peers.sharing.lease_holders import LeaseHolders
from kainite.peers.sharing.shared_log import open_shared_log
from kainite.settings import LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite_demo import services

SETTINGS: Final = LogSettings(table="log", owner="", enabled=True)
SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGTERM, "away": signal.SIGSTOP}
MEMBERS: Final = 3
LIMIT_S: Final = 60.0


async def member(endpoint: str, worker: str) -> None:
    """Takes part in the log until SIGTERM, or until it is killed."""
    store = DynamoDBStore(services.dynamodb_client(endpoint), SETTINGS.table)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    nobody = LeaseHolders(lambda _: None, time.monotonic)
    async with open_shared_log(store, replace(SETTINGS, owner=worker), UowSettings(), "s", holders=nobody) as (
        log,
        running,
    ):
        await log.reached()
        print("reached", flush=True)
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)


async def measure(way: str, times: int) -> list[float]:
    """Returns the seconds that each change of owners took, in order of length."""
    with tempfile.TemporaryDirectory() as folder, services.moto(Path(folder) / "moto.log") as address:
        endpoint = address()
        store = DynamoDBStore(services.dynamodb_client(endpoint), SETTINGS.table)
        store.create()
        with _members(endpoint) as members:
            for _ in range(MEMBERS):
                members.start()
            await _answering(store, 0)
            took = []
            for _ in range(times):
                head = store.read_head(SETTINGS.partition)
                assert head is not None
                began = time.perf_counter()
                members.signal(head.owner, SIGNALS[way])
                await _answering(store, head.generation)
                took.append(time.perf_counter() - began)
                members.kill(head.owner)
                members.start()
            return sorted(took)


async def _answering(store: DynamoDBStore, before: int) -> None:
    """Waits until an owner of a later generation answers a question."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        head = await asyncio.to_thread(store.read_head, SETTINGS.partition)
        address = None if head is None else reached_by(head.address, head.token)
        if head is not None and address is not None and head.generation > before:
            with contextlib.suppress(KainiteError, OSError):
                async with _conversing(address, head.generation) as connection:
                    await connection.position("s0")
                    return
        await asyncio.sleep(0.005)
    raise TimeoutError(f"no owner answered within {LIMIT_S:g} s")


@contextlib.asynccontextmanager
async def _conversing(address: OwnerAddress, generation: int) -> AsyncIterator[OwnerConnection]:
    log = f"{SETTINGS.table}/{SETTINGS.partition}"
    who = Access().introduce("watcher", LOG_USER, address.token)
    name = MemberName(log, "s", "watcher", this_process().as_text())
    async with connected(address, name, generation, lambda _: None, introduction=who) as connection:
        conversing = asyncio.create_task(connection.converse())
        opening = asyncio.create_task(connection.opened())
        try:
            await asyncio.wait({opening, conversing}, return_when=asyncio.FIRST_COMPLETED)
            if conversing.done():
                await conversing
            yield connection
        finally:
            for task in (opening, conversing):
                task.cancel()
            await asyncio.gather(opening, conversing, return_exceptions=True)


class _Members:
    """Processes that share a log."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0

    def start(self) -> None:
        """Starts a member, and waits until it owns the log or follows its owner."""
        self._started += 1
        worker = f"w{self._started}"
        command = [sys.executable, __file__, "--member", self._endpoint, "--worker", worker]
        self._running[worker] = process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"member {worker} ended before it had reached the log")

    def signal(self, worker: str, number: signal.Signals) -> None:
        self._running[worker].send_signal(number)

    def kill(self, worker: str) -> None:
        process = self._running.pop(worker)
        process.kill()
        process.communicate()

    def end(self) -> None:
        for worker in list(self._running):
            self.kill(worker)


@contextlib.contextmanager
def _members(endpoint: str) -> Iterator[_Members]:
    members = _Members(endpoint)
    try:
        yield members
    finally:
        members.end()


def quantile(took: Sequence[float], part: float) -> float:
    """Returns a quantile of values that are in order."""
    return took[min(len(took) - 1, int(len(took) * part))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="how often the owner is ended in each way")
    parser.add_argument("--ways", nargs="*", choices=SIGNALS, default=list(SIGNALS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--member", help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warn_unless_quiet()
    if options.member:
        asyncio.run(member(options.member, options.worker))
        return
    found = {}
    for way in options.ways:
        times = max(1, options.kills // 10) if way == "away" else options.kills
        took = asyncio.run(measure(way, times))
        found[way] = {"times": times, "p50_s": quantile(took, 0.5), "p99_s": quantile(took, 0.99), "most_s": took[-1]}
        if not options.json:
            print(f"{way:<6}{times:>5} times: p50 {quantile(took, 0.5):6.2f} s, p99 {quantile(took, 0.99):6.2f} s, "
                  f"most {took[-1]:6.2f} s", flush=True)  # fmt: skip
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()

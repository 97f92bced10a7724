"""``kainite log status``: which process owns the log partition, whether it is alive, and where it is reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from kainite.base.clock import epoch_ms
from kainite.base.process_identity import from_text
from kainite.cli.opened_log import opened_log
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json
from kainite.log.contract import LogHead, LogStore
from kainite.operations.inbox import WaitingRequests, waiting_requests
from kainite.settings import load

LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What HEAD tells of a log partition.

    Attributes:
        partition: the log partition's name.
        owner: the owner's worker id; None for a partition that nobody owns.
        process: the owner's process.
        address: where the owner takes connections; None if it takes none.
        generation: the generation of the owner, or of the last owner.
        alive: whether a heartbeat of the owner was seen; None if none came in the time that was waited.
        waited: seconds that were waited.
        entries: transaction id behind the last durable entry, as of the last heartbeat.
        truncated: entries below this id have left the log.
        waiting: requests of people that wait for the owner; None where the inbox cannot be read.
    """

    partition: str
    owner: str | None
    process: str | None
    address: str | None
    generation: int
    alive: bool | None
    waited: float
    entries: int
    truncated: int
    waiting: WaitingRequests | None = None


def observed(
    store: LogStore,
    partition: str,
    limit: float | None,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> LogStatus | None:
    """Returns the status of a partition, None for one that was never mounted.

    HEAD has no time in it: an owner is alive when HEAD's version changes while it is looked at.

    Args:
        store, partition: the log.
        limit: seconds to wait for a heartbeat; None means as long as the owner's lease.
        sleep: waits for so many seconds.
        clock: seconds, never running backwards.
    """
    first = head = store.read_head(partition)
    if head is None or first is None:
        return None
    began = clock()
    patience = first.lease_ms / 1000 if limit is None else limit
    while not head.released and head.version == first.version and clock() - began < patience:
        sleep(LOOK_EVERY_S)
        head = store.read_head(partition) or head
    return _status(partition, head, first, clock() - began)


def _status(partition: str, head: LogHead, first: LogHead, waited: float) -> LogStatus:
    process, owned = from_text(head.process), not head.released
    return LogStatus(
        partition,
        head.owner if owned else None,
        str(process) if process and owned else None,
        head.address.partition("@")[0] or None if owned else None,
        head.generation,
        (head.version != first.version or None) if owned else False,
        round(waited, 1),
        head.high_water_mark + 1,
        head.low_water_mark,
    )


@click.command("status")
@properties_option
@click.option("--wait", type=click.FloatRange(min=0), metavar="SECONDS",
              help="How long to wait for a heartbeat.  [the owner's lease]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(properties: Path, wait: float | None, as_json: bool) -> None:
    """Says which daemon owns the log, whether it is alive, where others reach it, and how many requests wait for it.

    The shards that each daemon reads are shown by "kainite leases".

    \b
    Examples:
      kainite log status -p app.properties
      kainite log status -p app.properties --wait 0 --json
    """
    store, partition = opened_log(load(properties, needs=("applicationName",)))
    found = observed(store, partition, wait)
    if found is not None:
        found = replace(found, waiting=waiting_requests(store, partition))
    if as_json:
        say_json(None if found is None else asdict(found))
    else:
        say("\n".join(lines(found, partition)))


def lines(found: LogStatus | None, partition: str) -> list[str]:
    """Returns a status as lines of text."""
    if found is None:
        return [f"log partition {partition} was never owned by anybody"]
    shown = [f"log partition {partition}, generation {found.generation}", *_owner_lines(found)]
    shown.append(f"entries up to {found.entries}, of which {found.truncated} are truncated")
    return shown if found.waiting is None else [*shown, found.waiting.in_words(epoch_ms())]


def _owner_lines(found: LogStatus) -> list[str]:
    if found.owner is None:
        return ["nobody owns it: the last owner has released it"]
    process = f" ({found.process})" if found.process else ""
    reached = f"others reach it at {found.address}" if found.address else "it takes no connections"
    beats = "it sends heartbeats" if found.alive else f"no heartbeat was seen within {found.waited:g} s"
    return [f"owned by {found.owner}{process}", reached, beats]

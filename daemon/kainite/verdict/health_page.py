"""Asks a process for its ``/health``, and a daemon for its children's last lines, in bounded time."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kainite.observe.paths import HEALTH, STDERR
from kainite.verdict.facts import DaemonFacts

LIMIT_S: Final = 1.0
"""Seconds for the connection, and for each part of the answer; a page is made within milliseconds."""

MOST_BYTES: Final = 16 * 2**20
"""The longest answer: thousands of shards."""

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


@dataclass(frozen=True, slots=True)
class ChildWords:
    """What a shard's child last wrote to standard error, or the one that ended before it.

    Attributes:
        state: the state of its consumer, such as ``PROCESSING``.
        pid: the child's process id; None without a child.
        lines: the oldest first, without secrets.
    """

    state: str
    pid: int | None
    lines: tuple[str, ...]


def ask_health(host: str, port: int) -> DaemonFacts:
    """Returns what the process answers; never raises.

    Args:
        host: its address; one that stands for all addresses of the host means this host.
        port: its ``metricsPort``.
    """
    return _ask(host, port, HEALTH)


def ask_child_words(addresses: Sequence[tuple[str, int]]) -> dict[str, ChildWords]:
    """Returns, by shard, what children last wrote to standard error, as the daemons at these addresses say.

    A daemon that does not answer tells of none; never raises.

    Args:
        addresses: host and ``metricsPort`` of each; they are asked one after the other.
    """
    answers = (_ask(host, port, STDERR).answer for host, port in addresses)
    shards = [answer.get("shards") for answer in answers if answer is not None]
    return {
        str(shard): ChildWords(str(told.get("state", "")), told.get("pid"), tuple(map(str, told.get("lines", ()))))
        for each in shards if isinstance(each, dict)
        for shard, told in each.items() if isinstance(told, dict)
    }  # fmt: skip


def _ask(host: str, port: int, path: str) -> DaemonFacts:
    host = _ANY.get(host, host)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    connection = http.client.HTTPConnection(host, port, timeout=LIMIT_S)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        answer = json.loads(connection.getresponse().read(MOST_BYTES))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return DaemonFacts(address, error=str(error) or type(error).__name__)
    finally:
        connection.close()
    if not isinstance(answer, dict):
        return DaemonFacts(address, error=f"its answer is no {path} page")
    return DaemonFacts(address, answer)

"""Asks a process for its ``/health``, in bounded time."""

from __future__ import annotations

import http.client
import json
from typing import Final

from kainite.verdict.facts import DaemonFacts

LIMIT_S: Final = 1.0
"""Seconds for the connection, and for each part of the answer; a page is made within milliseconds."""

MOST_BYTES: Final = 16 * 2**20
"""The longest answer: thousands of shards."""

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def ask_health(host: str, port: int) -> DaemonFacts:
    """Returns what the process answers; never raises.

    Args:
        host: its address; one that stands for all addresses of the host means this host.
        port: its ``metricsPort``.
    """
    host = _ANY.get(host, host)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    connection = http.client.HTTPConnection(host, port, timeout=LIMIT_S)
    try:
        connection.request("GET", "/health", headers={"Connection": "close"})
        answer = json.loads(connection.getresponse().read(MOST_BYTES))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return DaemonFacts(address, error=str(error) or type(error).__name__)
    finally:
        connection.close()
    if not isinstance(answer, dict):
        return DaemonFacts(address, error="its answer is no health page")
    return DaemonFacts(address, answer)

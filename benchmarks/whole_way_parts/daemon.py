"""Makes the settings of a daemon that takes PostgreSQL's changes from a stream into a log; waits for its log events."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from pathlib import Path

from kainite_demo import services
from kainite_demo.json_lines import JsonLinesFile
from kainite_demo.processes import Process


def daemon_settings(application: str, kinesis: str, dynamodb: str, folder: Path) -> dict[str, str]:
    """Returns the settings; the catalogue and the audit trail are in ``folder``."""
    return {
        "applicationName": application,
        "streamName": application,
        "executableName": f"{sys.executable} -m kainite_processors.postgresql_changes",
        "regionName": services.REGION,
        "kinesisEndpoint": kinesis,
        "dynamoDBEndpoint": dynamodb,
        "initialPositionInStream": "TRIM_HORIZON",
        "idleTimeBetweenReadsInMillis": "200",
        "metricsLevel": "NONE",
        "unitsOfWork": "true",
        "uowOrder": "dense",
        "logTableName": f"{application}-log",
        "catalogueFile": str(folder / "catalogue.json"),
        "auditTrail": str(folder / "audit"),
    }


def await_events(process: Process, events: Collection[str], limit: float) -> None:
    """Waits until a process has logged all these events.

    Raises:
        SystemExit: the process ended, or has not logged them within ``limit`` seconds.
    """
    log, left, end = JsonLinesFile(process.log), set(events), time.monotonic() + limit
    while left:
        left -= {line.get("event", "") for line in log.read()}
        if left and (process.status is not None or time.monotonic() > end):
            raise SystemExit(process.tail())
        time.sleep(0.1)

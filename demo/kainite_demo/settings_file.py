"""The ``.properties`` file of the demo: the same keys that a real installation sets."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import javaproperties
from kainite.errors import DemoError

PROCESSOR = Path(__file__).parents[2] / "record_processors" / "postgresql_changes" / "processor.py"


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything is: the work folder, the endpoint of both AWS services, stream and target."""

    folder: Path
    endpoint: str
    region: str
    stream: str
    target: str


def write_settings(path: Path, places: Places) -> None:
    """Write the file.

    Raises:
        DemoError: the record processor is not beside the sources.
    """
    if not PROCESSOR.exists():
        raise DemoError(f"{PROCESSOR} is missing: kainite demo runs from a checkout of the repository")
    path.write_text(javaproperties.dumps(_settings(places), timestamp=False))


def _settings(places: Places) -> dict[str, str]:
    return {
        "applicationName": "kainite-demo",
        "streamName": places.stream,
        "executableName": shlex.join([sys.executable, str(PROCESSOR)]),
        "workerId": "demo-worker",
        "regionName": places.region,
        "kinesisEndpoint": places.endpoint,
        "dynamoDBEndpoint": places.endpoint,
        "initialPositionInStream": "TRIM_HORIZON",
        "idleTimeBetweenReadsInMillis": "200",
        # Short leases, so that what a kill leaves behind runs out within seconds.
        "failoverTimeMillis": "3000",
        "logLeaseMillis": "3000",
        "logHeartbeatMillis": "1000",
        "applyLeaseMillis": "3000",
        "unitsOfWork": "true",
        "uowOrder": "dense",
        "catalogueFile": str(places.folder / "catalogue.json"),
        "auditTrail": str(places.folder / "audit"),
        "target": places.target,
        "applyMaster": "local[2]",
    }

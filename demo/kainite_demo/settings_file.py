"""The ``.properties`` file of the demo: the same keys that a real installation sets."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import javaproperties

from kainite.base.errors import DemoError
from kainite_demo.parts import Parts, extractor_command
from kainite_demo.services import REGION

PROCESSOR = Path(__file__).parents[2] / "record_processors" / "postgresql_changes" / "processor.py"
LOG_PARTITION = "0"


def log_table(parts: Parts) -> str:
    return f"{parts.name}-log"


def write_settings(parts: Parts, begin_with: Path | None = None) -> None:
    """Write the file.

    Args:
        parts: of the run; what they decide replaces what ``begin_with`` says.
        begin_with: a settings file whose leases, intervals and limits are to be used.

    Raises:
        DemoError: the record processor is not beside the sources.
    """
    if not PROCESSOR.exists():
        raise DemoError(f"{PROCESSOR} is missing: kainite demo runs from a checkout of the repository")
    pace = _PACE if begin_with is None else javaproperties.loads(begin_with.read_text(encoding="utf-8"))
    parts.settings.write_text(javaproperties.dumps({**pace, **_settings(parts)}, timestamp=False))


# Short leases, so that what a kill leaves behind runs out within seconds.
_PACE = {
    "idleTimeBetweenReadsInMillis": "200",
    "failoverTimeMillis": "3000",
    "logLeaseMillis": "3000",
    "logHeartbeatMillis": "1000",
    "applyLeaseMillis": "3000",
}


def _settings(parts: Parts) -> dict[str, str]:
    return {
        "applicationName": parts.name,
        "streamName": parts.name,
        "executableName": shlex.join([sys.executable, str(PROCESSOR)]),
        "workerId": "demo-worker",
        "extractorName": shlex.join(extractor_command(parts)),
        "extractorMode": "cyclic",
        "extractorOffsets": str(parts.offset_file.offsets),
        "extractorOffsetFile": str(parts.offset_file.path),
        # The extractor itself waits for transactions.
        "extractorIntervalMillis": "10",
        "extractSpread": "record",
        "regionName": REGION,
        "kinesisEndpoint": parts.endpoint,
        "dynamoDBEndpoint": parts.endpoint,
        "initialPositionInStream": "TRIM_HORIZON",
        # Several runs may go on at once, and nobody looks at their figures.
        "metricsPort": "0",
        "metricsLevel": "NONE",
        "unitsOfWork": "true",
        "uowOrder": "dense",
        "logTableName": log_table(parts),
        "logPartition": LOG_PARTITION,
        "catalogueFile": str(parts.catalogue),
        "auditTrail": str(parts.folder / "audit"),
        "target": parts.target,
        "applyMaster": "local[2]",
    }

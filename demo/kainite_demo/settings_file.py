"""Writes the ``.properties`` file of the demo: the same keys that a real installation sets."""

from __future__ import annotations

import shlex
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

import javaproperties

from kainite_demo.run_layout import RunLayout, RunOptions, SourceKind, duties, extractor_command
from kainite_demo.services import REGION

LOG_PARTITION = "0"
GRACE_MILLIS = 4000
"""The grace for DSQL's records: what delivery adds (:class:`kainite_demo.dsql_delivery.Habits`), and a busy machine."""


def log_table(layout: RunLayout) -> str:
    return f"{layout.name}-log"


def write_settings(layout: RunLayout, options: RunOptions) -> None:
    """Writes the file.

    Args:
        layout: the run's addresses and files; its keys replace those of the file that the options name.
        options: of the run.
    """
    source, given = options.source, options.settings
    pace = _PACE if given is None else javaproperties.loads(given.read_text(encoding="utf-8"))
    values = {**pace, **_settings(layout), **_OF_SOURCE[source](layout, source), **_fleet(layout, options)}
    layout.settings.write_text(javaproperties.dumps(values, timestamp=False))


# Short leases, so that those of a killed process expire within seconds.
_PACE = {
    "idleTimeBetweenReadsInMillis": "200",
    "failoverTimeMillis": "3000",
    "logLeaseMillis": "3000",
    "applyLeaseMillis": "3000",
    "fleetPingTimeoutMillis": "2500",
}


def fleet_table(layout: RunLayout) -> str:
    return f"{layout.name}-Fleet"


def _fleet(layout: RunLayout, options: RunOptions) -> dict[str, str]:
    if not options.fleet:
        return {}
    return {"fleet": "true", "fleetTableName": fleet_table(layout), "fleetDuties": ", ".join(duties(options))}


def _settings(layout: RunLayout) -> dict[str, str]:
    return {
        "applicationName": layout.name,
        "streamName": layout.name,
        "regionName": REGION,
        "kinesisEndpoint": layout.endpoint,
        "dynamoDBEndpoint": layout.endpoint,
        "initialPositionInStream": "TRIM_HORIZON",
        # Several runs may go on at once, and nobody reads their metrics.
        "metricsPort": "0",
        "metricsLevel": "NONE",
        "consoleListen": "127.0.0.1:0",
        "unitsOfWork": "true",
        "logTableName": log_table(layout),
        "logPartition": LOG_PARTITION,
        "catalogueFile": str(layout.catalogue),
        "auditTrail": str(layout.folder / "audit"),
        "target": layout.target,
        "applyMaster": "local[2]",
    }


def _command(name: str) -> str:
    """Returns the path of a command that is installed with Kainite."""
    return str(Path(sysconfig.get_path("scripts"), name))


def _extracted(layout: RunLayout, source: SourceKind) -> dict[str, str]:
    return {
        "executableName": shlex.join([_command("kainite-processor-postgresql")]),
        "extractorName": shlex.join(extractor_command(layout, source)),
        "extractorMode": "cyclic",
        "extractorOffsets": str(layout.offset_file.offsets),
        "extractorOffsetFile": str(layout.offset_file.path),
        # The extractor itself waits for transactions.
        "extractorIntervalMillis": "10",
        "extractSpread": "record",
        # The extractor waits for more transactions itself.
        "extractAggregation": "true",
        "extractAggregationMillis": "0",
        "uowOrder": "dense",
    }


def _dsql(layout: RunLayout, _: SourceKind) -> dict[str, str]:
    stream = ["--stream", layout.name, "--region", REGION, "--endpoint", layout.endpoint]
    processor = [_command("kainite-processor-aurora-dsql"), "--catalogue", str(layout.catalogue), *stream]
    return {
        "executableName": shlex.join(processor),
        "uowEnd": "watermark",
        "uowOrder": "time",
        "uowGraceMillis": str(GRACE_MILLIS),
    }


_OF_SOURCE: Mapping[SourceKind, Callable[[RunLayout, SourceKind], dict[str, str]]] = {
    SourceKind.POSTGRESQL: _extracted,
    SourceKind.MARIADB: _extracted,
    SourceKind.DSQL: _dsql,
}

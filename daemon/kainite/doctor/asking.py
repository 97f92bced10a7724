"""Says which checks a file needs, for the commands that run on this host.

Parts that need a database driver or the apply job's packages are imported by their names, when they are asked: a shard
host has neither.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from kainite.aws.clients import client
from kainite.base.errors import MissingExtraError
from kainite.doctor.aws_calls import hurried
from kainite.doctor.catalogue import look_at_catalogue
from kainite.doctor.finding import DoctorFinding
from kainite.doctor.host import look_at_exposure, look_at_file_limit, look_at_programs, look_at_settings
from kainite.doctor.ports import look_at_ports
from kainite.doctor.running import DoctorCheck
from kainite.doctor.streams import (
    look_at_clock,
    look_at_consumer,
    look_at_retention,
    look_at_shards,
    look_at_stream,
)
from kainite.doctor.tables import (
    NeededTable,
    fleet_table,
    lease_table,
    log_of_the_apply_job,
    log_of_the_owner,
    look_at_expiry,
    look_at_table,
)
from kainite.kinesis.read.retrieval import chosen_way
from kainite.settings import Examination, Settings
from kainite.settings.several import each_stream
from kainite.settings.targets import each_target

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient

ROLES: Final = ("run", "extract", "apply")
"""The commands that a host may run; each uses another part of a file."""

_SOURCE: Final = "kainite.doctor.source:look_at_source"
_APPLY: Final = "kainite_spark.doctor"


def roles_of(settings: Settings) -> tuple[str, ...]:
    """Returns the commands that a file describes."""
    described = {
        "run": bool(settings.child.command),
        "extract": bool(settings.extract.command),
        "apply": settings.apply.target is not None or bool(settings.of_targets),
    }
    return tuple(role for role in ROLES if described[role]) or ("run",)


def checks_for(found: Examination, roles: Iterable[str] = ()) -> tuple[DoctorCheck, ...]:
    """Returns the checks of a file.

    Args:
        found: the file, examined.
        roles: the commands that run on this host; none for all that the file describes.
    """
    of_the_file = DoctorCheck("settings", "the settings", partial(look_at_settings, found))
    settings = found.settings
    if settings is None:
        return (of_the_file,)
    wanted = frozenset(roles or roles_of(settings))
    return (
        of_the_file,
        DoctorCheck("programs", "programs", partial(look_at_programs, settings, wanted)),
        *_of_aws(settings, wanted),
        *(_of_the_source(settings) if "extract" in wanted else ()),
        *_of_the_target(settings, wanted),
        DoctorCheck("ports", "ports", partial(look_at_ports, settings, [role for role in ROLES if role in wanted])),
        *([DoctorCheck("host", "open files", partial(look_at_file_limit, settings))] if "run" in wanted else ()),
        DoctorCheck("secrets", "what is exposed", partial(look_at_exposure, settings)),
    )


def _of_aws(settings: Settings, roles: frozenset[str]) -> Iterator[DoctorCheck]:
    yield from _of_streams(settings, roles)
    tables: list[NeededTable] = []
    if "run" in roles:
        tables += [lease_table(settings)]
        tables += [log_of_the_owner(settings)] if settings.log.enabled else []
        tables += [fleet_table(settings)] if settings.fleet.enabled else []
    if "apply" in roles:
        tables.append(log_of_the_apply_job(settings))
    for table in tables:
        yield DoctorCheck(table.area, f"table {table.name}", partial(_table, settings, table))
    if "run" in roles and settings.fleet.enabled:
        yield DoctorCheck("fleet", "expiry of history", partial(_expiry, settings))
    yield DoctorCheck("clocks", "the clock of AWS", partial(_clock, settings, roles))


def _of_streams(settings: Settings, roles: frozenset[str]) -> Iterator[DoctorCheck]:
    stream = settings.stream
    if "run" in roles:
        for each in each_stream(settings):
            yield from _of_a_read_stream(each)
        if stream.output is not None:
            yield _of_written(settings, stream.output, None)
    elif "extract" in roles:
        yield _of_written(settings, stream.name, stream.arn)


def _of_a_read_stream(settings: Settings) -> Iterator[DoctorCheck]:
    stream = settings.stream
    of = f" of {stream.name}" if stream.names else ""
    yield DoctorCheck("stream", f"stream {stream.name}", lambda: look_at_stream(_kinesis(settings), settings))
    yield DoctorCheck("stream", f"retention{of}", lambda: look_at_retention(_kinesis(settings), settings))
    yield DoctorCheck("stream", f"fan-out{of}", partial(_consumer, settings))


def _consumer(settings: Settings) -> Iterator[DoctorFinding]:
    kinesis = _kinesis(settings)  # knows an endpoint of the environment, too
    if chosen_way(settings.stream.retrieval, kinesis.meta.endpoint_url).is_fan_out:
        yield from look_at_consumer(kinesis, settings)


def _of_written(settings: Settings, name: str, arn: str | None) -> DoctorCheck:
    return DoctorCheck("stream", f"stream {name}", lambda: look_at_shards(_kinesis(settings), name, arn))


def _of_the_source(settings: Settings) -> Iterator[DoctorCheck]:
    yield DoctorCheck("source", "the source", lambda: _named(_SOURCE, "postgresql")(settings))


def _of_the_target(settings: Settings, roles: frozenset[str]) -> Iterator[DoctorCheck]:
    named = settings.apply.target is not None or settings.uow.catalogue_file is not None or settings.of_targets
    if named and ("apply" in roles or ("run" in roles and settings.log.enabled)):
        yield DoctorCheck("target", "the target's tables", partial(look_at_catalogue, settings))
    if "apply" in roles:
        for each in each_target(settings):
            what = f"target.{each.target_name}" if each.target_name else "the target"
            yield DoctorCheck("target", what, partial(_look_at_target, each))
        yield DoctorCheck("spark", "Spark", lambda: _named(f"{_APPLY}:look_at_spark", "spark")(settings))


def _look_at_target(settings: Settings) -> Iterable[DoctorFinding]:
    return _named(f"{_APPLY}:look_at_target", "spark")(settings)


def _named(path: str, extra: str) -> Callable[[Settings], Iterable[DoctorFinding]]:
    """Imports a function by its name; raises MissingExtraError where a package is missing for it."""
    module, _, name = path.partition(":")
    try:
        found: Callable[[Settings], Iterable[DoctorFinding]] = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise MissingExtraError(f"this cannot be asked ({error}): pip install 'kainite[{extra}]'") from error
    return found


def _kinesis(settings: Settings) -> KinesisClient:
    return client("kinesis", hurried(settings.aws))


def _table(settings: Settings, table: NeededTable) -> Iterator[DoctorFinding]:
    return look_at_table(client("dynamodb", hurried(settings.aws)), table)


def _expiry(settings: Settings) -> Iterator[DoctorFinding]:
    return look_at_expiry(client("dynamodb", hurried(settings.aws)), settings.fleet.table)


def _clock(settings: Settings, roles: frozenset[str]) -> Iterator[DoctorFinding]:
    if roles == {"apply"}:  # whose role may not ask Kinesis
        dynamodb = client("dynamodb", hurried(settings.aws))
        return look_at_clock(partial(dynamodb.describe_table, TableName=settings.log.table))
    return look_at_clock(
        partial(_kinesis(settings).list_shards, StreamName=each_stream(settings)[0].stream.name, MaxResults=1)
    )

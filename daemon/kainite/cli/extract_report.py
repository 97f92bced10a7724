"""The report of ``kainite extract --check``: the extractor's settings, their guarantee, and their problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kainite.base.errors import KainiteError
from kainite.child.program_lookup import find
from kainite.cli import settings_report as check
from kainite.extract.guarantees import guarantee
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.settings import Examination, Settings, examine
from kainite.settings.keys.table import KEYS

_SECTIONS = frozenset({"extract", "aws", "aws.kinesis"})
_OTHERS = frozenset(
    {"streamName", "streamArn", "shardSyncIntervalMillis", "shutdownGraceMillis", "childKillMillis"}
    | {"taskBackoffTimeMillis"}
    | {"markerEom", "markerEop", "markersEnvironment", "markersArguments"}
)
_SHOWN = frozenset(key.name for key in KEYS if key.section in _SECTIONS or key.name in _OTHERS)


def show(path: Path | None, options: Sequence[str], *, as_json: bool, everything: bool) -> int:
    """Prints the report; returns the exit code. The arguments are those of :func:`kainite.cli.settings_report.show`.

    Raises:
        SettingsError: the file cannot be read, or an option is unknown.
    """
    examined = examine(path, options=options, needs=("streamName", "extractorName"))
    found = check.report(examined)
    problems = (*examined.problems, *_problems(examined))
    return check.say(
        replace(
            found,
            ok=not problems,
            problems=problems,
            notes=tuple(_notes(examined)),
            settings=tuple(line for line in found.settings if line.key in _SHOWN),
        ),
        as_json=as_json,
        everything=everything,
    )


def _notes(examined: Examination) -> Iterator[str]:
    if examined.settings is not None:
        yield guarantee(examined.settings.extract)


def _problems(examined: Examination) -> Iterator[str]:
    if examined.settings is None:
        return
    for look in (_program, _place):
        try:
            look(examined.settings)
        except KainiteError as error:
            yield str(error)


def _program(settings: Settings) -> None:
    find(settings.extract.command, "extractorName")


def _place(settings: Settings) -> None:
    if (file := offset_file_of(settings)) is not None:
        file.load()

"""Asks a PostgreSQL source what ``kainite-extract-postgresql`` will need: WAL, role, slot, publication, identities.

The checks are those of ``kainite replicate init``, without what a load alone needs. This module imports a database
driver, so it is itself imported by its name (:mod:`kainite.doctor.asking`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kainite.doctor.clocks import clock_finding, timed
from kainite.doctor.finding import DoctorFinding, FindingState, warned
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.replicate.configured_ends import EXTRACTORS, source_of
from kainite.replicate.ends import source_session
from kainite.replicate.findings import CheckFinding, CheckVerdict
from kainite.replicate.source_checks import look_at_source as look_at_replicated
from kainite.replicate.tables import published
from kainite.settings import Settings

_AREA: Final = "source"
_OF_A_LOAD: Final = frozenset({"source version", "slots", "wal senders", "rights", "row security"})
"""What only the copy of the tables needs: an extractor reads the WAL, and no table."""

_STATES: Final = {
    CheckVerdict.OK: FindingState.WELL,
    CheckVerdict.WARNING: FindingState.WARNING,
    CheckVerdict.WRONG: FindingState.WRONG,
}
_NOW: Final = "SELECT extract(epoch FROM now())::float8"
_BEGIN: Final = '{"lsn":"…","number":0}'


def look_at_source(settings: Settings) -> Iterator[DoctorFinding]:
    """Yields what is found of the source that ``extractorName`` reads; nothing for another extractor.

    Raises:
        SettingsError: the command line lacks an option.
        SourceError: the source does not answer.
    """
    if all(Path(word).name not in EXTRACTORS for word in settings.extract.command):
        return
    source, required = source_of(settings.extract.command)
    with source_session(source.url, "kainite doctor") as connection:
        tables = published(connection, source.publication)
        for finding in look_at_replicated(connection, source, tables, required):
            if finding.about not in _OF_A_LOAD:
                yield _told(finding)
        row, ours = timed(lambda: connection.execute(_NOW).fetchone())
        assert row is not None, "a SELECT without FROM has a row"
        yield clock_finding("the source", row[0], ours)
    yield from _offset(settings)


def _told(finding: CheckFinding) -> DoctorFinding:
    return DoctorFinding(_AREA, f"{finding.about}: {finding.found}", _STATES[finding.verdict], finding.mend)


def _offset(settings: Settings) -> Iterator[DoctorFinding]:
    file = offset_file_of(settings)
    if file is not None and not file.path.exists():
        yield warned(_AREA, f"offset file {file.path} does not exist: the first extraction needs a place",
                     f"kainite extract -p {settings.path} --begin '{_BEGIN}', with the slot's LSN")  # fmt: skip

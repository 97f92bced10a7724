"""The file that keeps the place of an extraction.

The file is replaced in one step and is on the disk when :meth:`OffsetFile.save` returns, so a crash leaves the old
place or the new one. A file that is missing, broken or of another extraction is refused: going on without it would put
everything on the stream a second time, or leave a gap. :meth:`OffsetFile.create` makes the first file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import orjson

from kainite.base.errors import SettingsError, SourceError
from kainite.extract.offsets.place import Json, Place
from kainite.settings import ExtractMode, ExtractOffsets, ExtractSettings, Settings

_IN_FILE: Final[Mapping[ExtractOffsets, str]] = {ExtractOffsets.KAINITE: "child", ExtractOffsets.TIME: "time"}
"""The kind of offsets as the file has it since its first version: it is part of the file's format."""


@dataclass(frozen=True, slots=True)
class OffsetFile:
    """The offset file of one extraction; only an extraction of the same kind onto the same stream may read it."""

    path: Path
    stream: str
    offsets: ExtractOffsets

    def save(self, place: Place) -> None:
        """Replaces the file; returns when it is on the disk.

        Raises:
            SourceError: the file cannot be written.
        """
        fresh = self.path.with_name(f"{self.path.name}.new")
        try:
            with fresh.open("wb") as file:
                file.write(orjson.dumps(self._content(place)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise SourceError(f"offset file {self.path} cannot be written: {error.strerror}") from error

    def load(self) -> Place:
        """Reads the file.

        Raises:
            SourceError: the file is missing, broken, or of another extraction.
        """
        try:
            fields = orjson.loads(self.path.read_bytes())
            found = self._content(Place(fields["start"], fields["end"]))
        except OSError as error:
            raise SourceError(
                f"offset file {self.path}: {error.strerror}; say where to begin with --begin, once, or put it back"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise SourceError(f"offset file {self.path} is broken: put back a copy that is not older") from None
        if fields.get("stream") != self.stream:
            raise SourceError(f"offset file {self.path} is of stream {fields.get('stream')!r}, not of {self.stream!r}")
        if fields.get("offsets") != found["offsets"]:
            kept = next((str(kind) for kind, word in _IN_FILE.items() if word == fields.get("offsets")), None)
            raise SourceError(f"offset file {self.path} is of extractorOffsets={kept}, not of {self.offsets}")
        return Place(found["start"], found["end"])

    def create(self, place: Place) -> None:
        """Makes the first file.

        Raises:
            SourceError: the file exists, or cannot be written.
        """
        if self.path.exists():
            raise SourceError(
                f"offset file {self.path} is there already: --begin is said once; delete it to begin anew"
            )
        self.save(place)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the file against other processes; the lock ends with this process, however it ends.

        Raises:
            SourceError: another process has the lock.
        """
        with self._open_lock():
            yield

    def _open_lock(self) -> IO[bytes]:
        try:
            file = self.path.with_name(f"{self.path.name}.lock").open("wb")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise SourceError(f"offset file {self.path} is in use: another kainite extract runs with it") from None
        except OSError as error:
            raise SourceError(f"offset file {self.path} cannot be locked: {error.strerror}") from error
        return file

    def _content(self, place: Place) -> dict[str, Json]:
        return {"stream": self.stream, "offsets": _IN_FILE[self.offsets], "start": place.start, "end": place.end}


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def offset_file_of(settings: Settings) -> OffsetFile | None:
    """Returns the file that the place is kept in; None where the extractor keeps its offset.

    Raises:
        SettingsError: the file is needed and not set.
    """
    extract = settings.extract
    if not needs_offset_file(extract):
        return None
    if extract.offset_file is None:
        raise SettingsError(f"extractorOffsetFile is missing: extractorOffsets={extract.offsets} keeps the place there")
    return OffsetFile(extract.offset_file, settings.stream.name, extract.offsets)


def needs_offset_file(extract: ExtractSettings) -> bool:
    """Tells whether Kainite keeps the place."""
    return extract.mode is ExtractMode.CYCLIC and extract.offsets is not ExtractOffsets.EXTRACTOR

"""The offset file: what is refused, and what a crash leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import SourceError
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.settings import ExtractOffsets


@pytest.fixture
def file(tmp_path: Path) -> OffsetFile:
    return OffsetFile(tmp_path / "offset", "orders", ExtractOffsets.KAINITE)


@pytest.mark.parametrize("place", [Place(None), Place({"lsn": "0/17", "number": 3}), Place("a", "b")])
def test_a_place_reads_back(file: OffsetFile, place: Place) -> None:
    file.save(place)
    assert file.load() == place


def test_what_was_half_written_is_not_read(file: OffsetFile) -> None:
    file.save(Place(5))
    file.path.with_name("offset.new").write_bytes(b'{"stream"')
    assert file.load() == Place(5)


def test_a_missing_file_is_refused_and_the_way_out_named(file: OffsetFile) -> None:
    with pytest.raises(SourceError, match="No such file or directory; say where to begin with --begin, once"):
        file.load()


@pytest.mark.parametrize("content", [b"", b"[]", b"5", b'{"start":1}', b'{"start":1,"end":', b"\xff"])
def test_a_broken_file_is_refused(file: OffsetFile, content: bytes) -> None:
    file.path.write_bytes(content)
    with pytest.raises(SourceError, match="is broken"):
        file.load()


def test_another_extractions_file_is_refused(file: OffsetFile) -> None:
    file.save(Place(5))
    with pytest.raises(SourceError, match="is of stream 'orders', not of 'bills'"):
        replace(file, stream="bills").load()
    with pytest.raises(SourceError, match="is of extractorOffsets=kainite, not of time"):
        replace(file, offsets=ExtractOffsets.TIME).load()


@pytest.mark.parametrize(("offsets", "word"), [(ExtractOffsets.KAINITE, "child"), (ExtractOffsets.TIME, "time")])
def test_the_kind_of_offsets_stands_in_the_file_as_since_its_first_version(
    file: OffsetFile, offsets: ExtractOffsets, word: str
) -> None:
    of_kind = replace(file, offsets=offsets)
    of_kind.save(Place("a", "b"))
    assert file.path.read_bytes() == b'{"stream":"orders","offsets":"%s","start":"a","end":"b"}\n' % word.encode()
    assert of_kind.load() == Place("a", "b")


def test_a_file_is_made_once(file: OffsetFile) -> None:
    file.create(Place(None))
    with pytest.raises(SourceError, match="is there already"):
        file.create(Place(None))


def test_a_folder_that_is_not_there_is_reported(file: OffsetFile) -> None:
    nowhere = replace(file, path=file.path / "deeper")
    with pytest.raises(SourceError, match="cannot be written"):
        nowhere.save(Place(1))
    with pytest.raises(SourceError, match="cannot be locked"), nowhere.locked():
        pass


def test_one_extraction_at_a_time_works_with_a_file(file: OffsetFile) -> None:
    with file.locked(), pytest.raises(SourceError, match="is in use"), file.locked():
        pass
    with file.locked():
        pass

"""Requests are answered one after the other, until the input ends."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kainite.base.errors import SettingsError, SourceError
from kainite.base.markers import EXTRACTION, Markers
from kainite.capture.patient_output import PatientOutput
from kainite.capture.serving import BadRequestError, errors_told, markers_of, serve


def test_each_request_is_answered_and_ended() -> None:
    requests, ask = os.pipe()
    answers, tell = os.pipe()
    os.write(ask, b"one\ntwo\n")
    os.close(ask)

    def answer(request: bytes) -> Iterator[bytes]:
        yield request.upper()
        yield b""

    serve(answer, Markers(used=EXTRACTION), requests, PatientOutput(tell, lambda: None))
    os.close(tell)
    with os.fdopen(answers, "rb") as told:
        assert told.read() == b"ONE\n\n\0TWO\n\n\0"
    os.close(requests)


def test_markers_are_read_from_the_environment() -> None:
    names = ("EOM", "EOP", "EOB", "BNC")
    markers = markers_of({f"KAINITE_{name}": rf"{name}\x06" for name in names})
    assert (markers.eom, markers.bnc) == (b"EOM\x06", b"BNC\x06")
    assert markers_of({}).eom == b"\n"


@pytest.mark.parametrize(
    ("error", "away", "status"),
    [
        (SourceError("gone"), True, os.EX_TEMPFAIL),
        (SourceError("gone"), False, 1),
        (BadRequestError("no offset"), True, 1),
        (SettingsError("wrong"), True, 1),
    ],
)
def test_an_error_ends_the_program_with_a_line_and_a_status(
    error: Exception, away: bool, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, errors_told("reader", lambda: away):
        raise error
    assert (ended.value.code, capfd.readouterr().err) == (status, f"reader: {error}\n")

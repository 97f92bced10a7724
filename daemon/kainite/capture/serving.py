"""Runs an extractor's program on standard input and output: a request is answered when it has come.

The program ends when its input ends. Every error is one line on standard error. The exit status is 75 where the
source's server is away, so that ``kainite extract`` waits for it, and 1 where somebody has to mend something.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import click
import orjson

from kainite.base import display
from kainite.base.errors import KainiteError, SourceError
from kainite.base.marker_spelling import unescape
from kainite.base.markers import EXTRACTION, Markers
from kainite.base.redaction import redacted
from kainite.capture.patient_output import PatientOutput
from kainite.child.markers.framing import Scanner

_READ_SIZE = 64 * 1024


class BadRequestError(SourceError):
    """A request without an offset of this extractor: the settings are wrong, whether the source is there or not."""


def no_offset(value: object, example: str) -> BadRequestError:
    """Returns the error of a request whose offset is none of the extractor's.

    Args:
        value: what came in the offset's place.
        example: an offset with which to begin.
    """
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        text = "JSON of so many levels"  # it reads more of them than it writes
    return BadRequestError(f"{text} is no offset of this extractor: begin with {example}")


@contextmanager
def errors_told(program: str, is_away: Callable[[], bool]) -> Iterator[None]:
    """Ends the program with a line and an exit status where the block raises.

    Args:
        program: the program's name, which the line begins with.
        is_away: tells whether the source's server is away, which may be why whatever was asked of it failed.
    """
    try:
        yield
    except BrokenPipeError:
        sys.exit(f"{program}: kainite extract has ended")
    except (KainiteError, OSError) as error:
        click.echo(display.one_line(redacted(f"{program}: {error}")), err=True)
        of_source = isinstance(error, SourceError) and not isinstance(error, BadRequestError)
        sys.exit(os.EX_TEMPFAIL if of_source and is_away() else 1)


def answer_requests(program: str, answer: Callable[[bytes], Iterator[bytes]], keep_alive: Callable[[], None]) -> None:
    """Answers what comes on standard input until it ends.

    Args:
        program: the program's name.
        answer: returns the messages of the answer to a request.
        keep_alive: called now and then while nobody takes an answer.

    Raises:
        SourceError: a request cannot be answered, or the source broke.
    """
    if sys.stdin.isatty():
        click.echo(f"{program}: reads requests from standard input; name it as extractorName (--help)", err=True)
    output = PatientOutput(sys.stdout.fileno(), keep_alive)
    serve(answer, markers_of(os.environ), sys.stdin.fileno(), output)


def markers_of(environment: Mapping[str, str]) -> Markers:
    """Returns the markers that Kainite names in a child's environment, or the default ones."""
    names = ("KAINITE_EOM", "KAINITE_EOP", "KAINITE_EOB", "KAINITE_BNC")
    if names[0] not in environment:
        return Markers(used=EXTRACTION)
    eom, eop, eob, bnc = (unescape(environment[name]) for name in names)
    return Markers(eom, eop, eob, bnc, used=EXTRACTION)


def serve(answer: Callable[[bytes], Iterator[bytes]], markers: Markers, requests: int, answers: PatientOutput) -> None:
    """Answers requests until the input ends.

    Args:
        answer: returns the messages of the answer to a request.
        markers: what parts messages and answers.
        requests: the file descriptor of the input.
        answers: the output.
    """
    scanner = Scanner(markers)
    while data := os.read(requests, _READ_SIZE):
        for request in scanner.feed(data):
            for message in answer(request.payload):
                answers.write(markers.message(message))
                if not message:  # it only says that this process lives
                    answers.flush()
            answers.write(markers.eop)
            answers.flush()

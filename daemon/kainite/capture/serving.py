"""Runs an extractor on standard input and output: a request is answered when it has come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from kainite.base.marker_spelling import unescape
from kainite.base.markers import EXTRACTION, Markers
from kainite.capture.patient_output import PatientOutput
from kainite.child.markers.framing import Scanner

_READ_SIZE = 64 * 1024


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

"""Checks run side by side: one that hangs or raises is a finding, and the others are told in full."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from kainite.base.errors import SettingsError
from kainite.doctor.finding import DoctorFinding, FindingState, well
from kainite.doctor.running import DoctorCheck, run_checks


def test_one_that_hangs_or_raises_is_a_finding_and_the_others_are_told() -> None:
    never = threading.Event()

    def hangs() -> Iterator[DoctorFinding]:
        yield well("b", "first")
        never.wait()

    def refuses() -> Iterator[DoctorFinding]:
        yield well("c", "before")
        raise SettingsError("no port")

    def breaks() -> Iterator[DoctorFinding]:
        raise ZeroDivisionError("a mistake")

    checks = [
        DoctorCheck("b", "hanging", hangs),
        DoctorCheck("c", "refusing", refuses),
        DoctorCheck("d", "breaking", breaks),
        DoctorCheck("e", "well", lambda: [well("e", "fine")]),
    ]
    found = run_checks(checks, 0.5)
    never.set()
    assert [(finding.what, finding.state is FindingState.WRONG) for finding in found] == [
        ("first", False),
        ("hanging: no answer within 0.5 s", True),
        ("before", False),
        ("refusing: no port", True),
        ("breaking: ZeroDivisionError: a mistake", True),
        ("fine", False),
    ]


def test_what_two_checks_find_is_told_once() -> None:
    check = DoctorCheck("a", "x", lambda: [well("a", "same")])
    assert run_checks([check, check], 10.0) == (well("a", "same"),)


def test_an_error_that_two_checks_of_an_area_have_is_told_once_with_both() -> None:
    def raises() -> Iterator[DoctorFinding]:
        raise SettingsError("no tables")
        yield

    checks = [DoctorCheck(area, asks, raises) for area, asks in (("a", "x"), ("a", "y"), ("b", "z"))]
    assert [finding.what for finding in run_checks(checks, 10.0)] == ["x, y: no tables", "z: no tables"]

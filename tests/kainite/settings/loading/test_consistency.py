"""Problems that no single value shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kainite.base.address import Address
from kainite.base.markers import Batching
from kainite.settings.keys.table import KEYS
from kainite.settings.loading.consistency import Overridden, clashes, contradictions, missing, overridden
from kainite.settings.loading.overrides import GivenText
from kainite.settings.sections.child import ChildProtocol
from kainite.settings.sections.uow import UowEnd, UowOrder

OPEN = Address("10.0.0.5", 9000)
FILE = Path("/etc/kainite/file")
CERTIFICATE = {("service", "certificate_file"): FILE, ("service", "key_file"): FILE}
OUTPUT = {("stream", "output"): "next", ("child", "protocol"): ChildProtocol.MARKERS}
WATERMARK = {("uow", "end"): UowEnd.WATERMARK}
REQUIRED = {key.name for key in KEYS if key.required}


def given(text: str, origin: str = "file") -> GivenText:
    return GivenText(text, "key", origin)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({("uow", "order"): UowOrder.TIME}, "uowOrder=time needs uowEnd=watermark"),
        ({("uow", "order"): UowOrder.DENSE, **WATERMARK}, "uowOrder=dense needs uowEnd=marker"),
        ({("uow", "grace"): 301.0, **WATERMARK}, "uowGraceMillis must be at most half of uowTimeoutMillis"),
        ({("service", "listen"): OPEN}, "logListen 10.0.0.5:9000 is reached from other hosts"),
        ({("service", "listen"): OPEN, ("service", "secret_file"): FILE}, "logListen 10.0.0.5:9000 is reached"),
        ({("service", "listen"): OPEN, **CERTIFICATE}, "logListen 10.0.0.5:9000 is reached from other hosts"),
        ({("service", "listen"): Address("localhost.example", 1)}, "logListen localhost.example:1 is reached"),
        ({("service", "certificate_file"): FILE}, "logCertificateFile and logKeyFile go together"),
        ({("service", "applications_listen"): OPEN}, "logApplicationsListen 10.0.0.5:9000 is reached from other hosts"),
        (
            {("service", "applications_listen"): Address("::", 1), **CERTIFICATE, ("service", "trust_file"): FILE},
            "logApplicationsListen [::]:1 is no address to connect to: set logApplicationsAdvertise",
        ),
        (
            {("service", "listen"): Address("0.0.0.0", 1), **CERTIFICATE, ("service", "trust_file"): FILE},
            "logListen 0.0.0.0:1 is no address to connect to: set logAdvertise",
        ),
        ({**OUTPUT, ("log", "enabled"): True}, "output and unitsOfWork=true exclude each other"),
        ({**OUTPUT, ("child", "protocol"): ChildProtocol.JSON_LINES}, "output needs childProtocol=markers"),
        ({**OUTPUT, ("stream", "name"): "next"}, "output is next, the stream that is read"),
        ({**OUTPUT, ("stream", "arn"): "arn:aws:kinesis:eu-west-1:1:stream/next"}, "output is next, the stream that"),
        ({("child.markers", "eop"): b"\n"}, "markerEom, markerEop, markerEob, markerBnc: EOM is the same as EOP"),
        (
            {("child.markers", "eop"): b"\x06", ("child.markers", "batching"): Batching.WORKER},
            "markerEom, markerEop, markerEob, markerBnc: EOP is the same as BNC",
        ),
        (
            {
                ("child.markers", "eop"): b"\x06",
                ("apply", "target"): "exec:x",
                ("apply", "loader_batching"): Batching.WORKER,
            },
            "markerEom, markerEop, markerEob, markerBnc: EOP is the same as BNC",
        ),
    ],
)
def test_values_that_contradict_each_other_are_a_problem(values: dict[tuple[str, str], Any], problem: str) -> None:
    (found,) = contradictions(values)
    assert found.startswith(problem)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {**OUTPUT, ("stream", "name"): "first"},
        {("child.markers", "eop"): b"\x06"},  # BNC's default, which only batches of the child's use
        {("child.markers", "eop"): b"\x06", ("child.markers", "batching"): Batching.SUPERVISOR},
        {
            ("child.markers", "eop"): b"\x06",
            ("apply", "target"): "exec:x",
            ("apply", "loader_batching"): Batching.WORKER,
            ("child.markers", "bnc"): b"\x05",
        },
        {("service", "listen"): Address("127.0.0.1", 0)},
        {("service", "listen"): Address("::1", 0), ("service", "secret_file"): FILE},
        {("service", "listen"): OPEN, **CERTIFICATE, ("service", "trust_file"): FILE},
        {("service", "listen"): OPEN, **CERTIFICATE, ("service", "secret_file"): FILE},
    ],
)
def test_values_that_agree_are_no_problem(values: dict[tuple[str, str], Any]) -> None:
    assert contradictions(values) == []


@pytest.mark.parametrize(
    ("present", "absent"),
    [
        ({"applicationName", "streamName", "executableName"}, set()),
        ({"applicationName", "streamArn", "executableName"}, set()),
        ({"applicationName", "streamName", "extractorName"}, set()),
        (set(), {"applicationName", "streamName", "executableName"}),
    ],
)
def test_a_required_key_is_missing_unless_another_stands_in(present: set[str], absent: set[str]) -> None:
    found = missing({name: given("x") for name in present}, REQUIRED)
    assert {line.partition(" ")[0] for line in found} == absent
    assert absent <= REQUIRED


@pytest.mark.parametrize(
    ("key", "winner", "other", "warned", "clashing"),
    [
        ("streamName", given("b", "environment STREAM_NAME"), given("a"), True, False),
        ("applicationName", given("b", "environment APPLICATION_NAME"), given("a"), False, True),
        ("applicationName", given("b", "environment KAINITE_APPLICATION_NAME"), given("a"), False, False),
        ("streamName", given("b", "environment KAINITE_STREAM_NAME"), given("a"), False, False),
        ("streamName", given("a", "environment STREAM_NAME"), given("a"), False, False),
        ("streamName", given("b", "command line"), given("a"), False, False),
        ("streamName", given("b", "environment STREAM_NAME"), given("a", "environment KAINITE_X"), False, False),
    ],
)
def test_a_variable_that_may_be_meant_for_another_program(
    key: str, winner: GivenText, other: GivenText, warned: bool, clashing: bool
) -> None:
    changed = [Overridden(key, winner, other)]
    assert (bool(overridden(changed)), bool(clashes(changed))) == (warned, clashing)

"""Ports that two processes of a file would open, and ports that somebody has taken."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from kainite.doctor.finding import DoctorFinding, FindingState
from kainite.doctor.ports import look_at_ports
from support.doctored import DoctoredFile
from support.http_double import DoubleServer
from support.ports import free_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def ports(doctored: DoctoredFile, *roles: str) -> list[DoctorFinding]:
    return list(look_at_ports(doctored.settings(), roles or ("run", "apply")))


def test_one_port_for_two_processes(doctored: DoctoredFile) -> None:
    port = str(free_port())
    doctored.write(metricsPort=port, applyMetricsPort=port)
    [finding] = ports(doctored)
    assert finding.state is FindingState.WRONG
    assert finding.remedy == "set applyMetricsPort to another port"
    assert [finding.state for finding in ports(doctored, "run")] == [FindingState.WELL]


def test_the_duty_log_needs_no_port_of_the_daemon(doctored: DoctoredFile) -> None:
    doctored.write(metricsPort=str(free_port()), fleetDuties="log")
    assert [finding.state for finding in ports(doctored)] == [FindingState.WELL]


def test_the_duty_log_would_listen_where_its_daemon_does(doctored: DoctoredFile) -> None:
    doctored.write(logListen=f"127.0.0.1:{free_port()}", fleetDuties="log")
    [finding] = ports(doctored)
    assert "of kainite run and logListen" in finding.what
    assert finding.remedy == "give duty log a file of its own (properties, in fleetDutiesFile) with another logListen"


def test_a_duty_with_a_file_of_its_own(doctored: DoctoredFile) -> None:
    port = free_port()
    (doctored.folder / "duties.toml").write_text('[orders]\nkind = "extract"\nproperties = "orders.properties"\n')
    (doctored.folder / "orders.properties").write_text(f"extractMetricsPort = {port}\nmetricsHost = 0.0.0.0\n")
    doctored.write(metricsPort=str(port), fleetDutiesFile="duties.toml")
    [finding] = ports(doctored)
    assert f"extractMetricsPort 0.0.0.0:{port} of duty orders" in finding.what


def test_a_port_that_another_program_has(doctored: DoctoredFile, taken: int) -> None:
    doctored.write(metricsPort=str(taken))
    [finding] = ports(doctored)
    assert finding.state is FindingState.WRONG
    assert "taken by another program" in finding.what
    doctored.write(logListen=f"127.0.0.1:{taken}")
    assert [finding.state for finding in ports(doctored)] == [FindingState.WARNING]


def test_a_daemon_that_runs_already(doctored: DoctoredFile) -> None:
    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = DoubleServer(Health)
    doctored.write(metricsPort=server.endpoint.rpartition(":")[2])
    try:
        [finding] = ports(doctored)
    finally:
        server.close()
    assert finding.state is FindingState.WELL


def test_an_address_of_another_host(doctored: DoctoredFile) -> None:
    doctored.write(metricsPort="9400", metricsHost="192.0.2.1")
    [finding] = ports(doctored)
    assert "cannot be opened" in finding.what

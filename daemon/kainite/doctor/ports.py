"""Finds ports that two processes of a file would open on one host, and ports that somebody has taken."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from kainite.base.address import Address
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.fleet.declared import declared_duties
from kainite.fleet.model.records import DutyKind
from kainite.settings import Settings, load
from kainite.verdict.health_page import ask_health

_AREA = "ports"
_ANY = frozenset({"0.0.0.0", "::", ""})


@dataclass(frozen=True, slots=True)
class WantedPort:
    """A port that a process of a file opens.

    Attributes:
        key: the setting.
        process: who opens it.
        address: where.
        tells_health: whether a Kainite process that has it answers ``/health`` there.
    """

    key: str
    process: str
    address: Address
    tells_health: bool = True

    def __str__(self) -> str:
        return f"{self.key} {self.address} of {self.process}"

    def meets(self, other: WantedPort) -> bool:
        """Tells whether one host cannot open both."""
        one, two = self.address, other.address
        return one.port == two.port and (one.host == two.host or not _ANY.isdisjoint((one.host, two.host)))


def look_at_ports(settings: Settings, roles: Iterable[str]) -> Iterator[DoctorFinding]:
    """Yields which ports are wanted twice, and which are taken.

    Raises:
        SettingsError: a file of duties, or a duty's own settings, cannot be read.
    """
    wanted = tuple(wanted_ports(settings, roles))
    clashes = [(one, two) for one, two in combinations(wanted, 2) if one.meets(two)]
    for one, two in clashes:
        yield wrong(_AREA, f"{one} and {two} are one port on one host", _mend(one, two))
    for one in dict.fromkeys(wanted):
        if all(one not in pair for pair in clashes):
            yield _of_a_port(one)


def _mend(one: WantedPort, two: WantedPort) -> str:
    if one.key != two.key:
        return f"set {two.key} to another port"
    return f"give {two.process} a file of its own (properties, in fleetDutiesFile) with another {two.key}"


def wanted_ports(settings: Settings, roles: Iterable[str]) -> Iterator[WantedPort]:
    """Yields the ports that the commands of a file open, with those of its daemon's duties; without those that are free
    to choose."""
    for role in roles:
        yield from _of_a_role(settings, role, f"kainite {role}")
    if "run" in roles and settings.fleet.enabled:
        yield from _of_duties(settings, frozenset(roles))


def _of_duties(settings: Settings, roles: frozenset[str]) -> Iterator[WantedPort]:
    folder = settings.path.absolute().parent if settings.path else Path.cwd()
    for duty in declared_duties(settings.fleet):
        kind, own = duty.work.kind, duty.work.properties
        if kind not in (DutyKind.LOG, DutyKind.EXTRACT, DutyKind.APPLY) or (kind in roles and not own):
            continue  # what the command of the same file wants is known already
        used = load(folder / own, needs=()) if own else settings
        yield from _of_a_role(used, kind, f"duty {duty.name}")


def _of_a_role(settings: Settings, role: str, process: str) -> Iterator[WantedPort]:
    service, host = settings.service, settings.metrics.host
    metrics = {
        "run": ("metricsPort", settings.metrics.port),
        "log": ("logMetricsPort", service.metrics_port),
        "apply": ("applyMetricsPort", settings.apply.metrics_port),
        "extract": ("extractMetricsPort", settings.extract.metrics_port),
    }
    key, port = metrics[role]
    if port:
        yield WantedPort(key, process, Address(host, port))
    if (
        service.listen is not None
        and service.listen.port
        and (role == "log" or (role == "run" and settings.log.enabled))
    ):
        yield WantedPort("logListen", process, service.listen, tells_health=False)
    applications = service.applications_listen
    if role == "log" and applications is not None and applications.port:
        yield WantedPort("logApplicationsListen", process, applications, tells_health=False)


def _of_a_port(wanted: WantedPort) -> DoctorFinding:
    address = wanted.address
    try:
        family = socket.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with socket.socket(family[0][0], socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the process itself
            tried.bind(family[0][4])
    except OSError as error:
        return _taken(wanted) if error.errno == errno.EADDRINUSE else _unusable(wanted, error)
    return well(_AREA, f"{wanted} is free")


def _taken(wanted: WantedPort) -> DoctorFinding:
    port = wanted.address.port
    if not wanted.tells_health:
        return warned(_AREA, f"{wanted} is taken: well if that process runs here already",
                      f"ss -ltnp 'sport = :{port}' says by whom; else set {wanted.key} to another port")  # fmt: skip
    page = ask_health(wanted.address.host, port)
    if not page.error:
        return well(_AREA, f"{wanted} is open already: a process of Kainite answers there")
    return wrong(_AREA, f"{wanted} is taken by another program",
                 f"set {wanted.key} to another port; ss -ltnp 'sport = :{port}' says by whom")  # fmt: skip


def _unusable(wanted: WantedPort, error: OSError) -> DoctorFinding:
    return wrong(_AREA, f"{wanted} cannot be opened: {error.strerror or error}",
                 "metricsHost and logListen name an address of this host; ports below 1024 are root's")  # fmt: skip

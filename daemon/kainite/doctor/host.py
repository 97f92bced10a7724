"""Looks at this host: what the settings say, which programs are there, how many files may be open, who may read."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from kainite.base.errors import SettingsError
from kainite.child.program_lookup import find
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.settings import Examination, Settings
from kainite.settings.exposure.listing import exposures
from kainite.settings.loader_command import loader_command
from kainite.worker.file_limit import needed

_SETTINGS = "settings"


def look_at_settings(found: Examination) -> Iterator[DoctorFinding]:
    """Yields what is wrong with the settings, what may surprise, and which keys nobody knows."""
    shown = f"kainite run -p {found.place} --check shows all keys"
    for problem in found.problems:
        yield wrong(_SETTINGS, problem, f"correct {found.place}: docs/properties.md has the key")
    for entry in found.unknown:
        yield warned(_SETTINGS, f"unknown key {entry.key}", f"say {entry.nearest}" if entry.nearest else "delete it")
    for warning in found.warnings:
        yield warned(_SETTINGS, warning, shown)
    if not found.problems:
        yield well(_SETTINGS, f"{found.place} can be used")


def look_at_programs(settings: Settings, roles: frozenset[str]) -> Iterator[DoctorFinding]:
    """Yields whether the programs that Kainite starts are on this host."""
    commands = {
        "executableName": settings.child.command if "run" in roles else (),
        "extractorName": settings.extract.command if "extract" in roles else (),
        "target": loader_command(settings.apply.target or "") or () if "apply" in roles else (),
    }
    for key, command in commands.items():
        if command:
            yield _program(key, command)


def look_at_file_limit(settings: Settings) -> Iterator[DoctorFinding]:
    """Yields whether the daemon may have as many files and connections open as it may need."""
    wanted = needed(settings, ports=1 if settings.log.enabled else 0)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        yield warned("host", f"{hard} files may be open, and the daemon may need {wanted}",
                     f"ulimit -Hn {wanted}, or LimitNOFILE={wanted} in its systemd unit")  # fmt: skip
    else:
        yield well("host", f"{wanted} files may be open, which is all that the daemon may need")


def look_at_exposure(settings: Settings) -> Iterator[DoctorFinding]:
    """Yields what the settings expose to others."""
    found = exposures(settings)
    for exposure in found:
        yield warned("secrets", f"{exposure.where}: {exposure.what}", exposure.remedy)
    if not found:
        yield well("secrets", "nothing is exposed to other users, or on the network")


def _program(key: str, command: tuple[str, ...]) -> DoctorFinding:
    try:
        path = find(command, key)
    except SettingsError as error:
        what, _, remedy = str(error).partition("; ")
        return wrong("programs", what, remedy or "install it, or give its path")
    hint = "; kainite conform tries whether it keeps to the protocol" if key == "executableName" else ""
    return well("programs", f"{key}: {path} is there{hint}")

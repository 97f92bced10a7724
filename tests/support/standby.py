"""A PostgreSQL primary with a standby that keeps copies of its failover slots, on sockets of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from kainite_demo.postgres_server import made_folder, postgres, run_program, serving
from support.replicas import run
from support.waiting import eventually

STANDBY_SLOT = "the_standby"
_SYNCHRONISED = """
    SELECT synced AND NOT temporary FROM pg_replication_slots WHERE slot_name = %s AND invalidation_reason IS NULL"""


@dataclass
class Pair:
    """A primary and its standby.

    Attributes:
        primary: the primary's URL; its maintenance database.
        folders: where both have their data, the primary's first.
        standby: the standby's URL.
        user: whom the servers run as; None for the present user.
    """

    primary: str
    folders: tuple[Path, Path]
    standby: str
    user: str | None = None
    _servers: list[ExitStack] = field(default_factory=list)

    @property
    def either(self) -> str:
        """Returns the URL of whichever of both takes writes."""
        hosts = ",".join(str(folder) for folder in self.folders)
        return f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"

    def start_standby(self) -> None:
        """Starts the standby, or starts it again."""
        server = ExitStack()
        server.enter_context(serving(self.folders[1], self.user, {}))
        self._servers.append(server)

    def stop_standby(self) -> None:
        self._servers.pop().close()

    def close(self) -> None:
        while self._servers:
            self.stop_standby()

    def kill_primary(self) -> None:
        """Kills the primary, which does not come back."""
        pid = int((self.folders[0] / "postmaster.pid").read_text().partition("\n")[0])
        postmaster = psutil.Process(pid)
        for each in (postmaster, *postmaster.children()):
            with suppress(psutil.NoSuchProcess):
                each.kill()

    def promote(self) -> None:
        run_program(self.folders[1], self.user, "pg_ctl", "promote", "--wait", "--pgdata", str(self.folders[1]))

    def has_copied(self, slot: str) -> bool:
        """Tells whether the standby has a copy of a slot that lives on behind a promotion."""
        return bool(self._asked(_SYNCHRONISED, slot))

    def has_all(self) -> None:
        """Waits until the standby has replayed what the primary has written."""
        (lsn,) = run(self.primary, "SELECT pg_current_wal_lsn()::text")[0]
        eventually(lambda: self._asked("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", lsn), limit=90.0)

    def _asked(self, query: str, value: str) -> Any:
        with psycopg.connect(self.standby, autocommit=True) as connection:
            row = connection.execute(query.encode(), [value]).fetchone()
        return row is not None and row[0]


@contextmanager
def primary_with_standby(folder: Path) -> Iterator[Pair]:
    """Runs both servers; the standby copies slots, and the primary waits for nobody."""
    data = (folder / "a", folder / "b")
    with postgres(data[0], wal_level="logical") as primary:
        user = made_folder(data[1])
        data[1].chmod(0o700)
        source = f"user=postgres dbname=postgres host={data[0]}"
        copy = ("--checkpoint=fast", "--write-recovery-conf", "--create-slot", f"--slot={STANDBY_SLOT}", "--no-sync")
        run_program(data[1], user, "pg_basebackup", f"--dbname={source}", f"--pgdata={data[1]}", *copy)
        (data[1] / ".s.PGSQL.5432.lock").unlink()  # the primary's: its socket is in its data folder
        with (data[1] / "postgresql.auto.conf").open("a") as file:
            file.write("sync_replication_slots = on\nhot_standby_feedback = on\n")
        pair = Pair(primary, data, f"postgresql://postgres@/postgres?host={data[1]}", user=user)
        pair.start_standby()
        try:
            yield pair
        finally:
            pair.close()

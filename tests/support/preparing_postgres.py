"""Two PostgreSQL servers that prepare transactions."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from kainite_demo.postgres_server import postgres
from support.names import unique


@contextmanager
def two_servers(**settings: str) -> Iterator[tuple[str, str]]:
    """Gives the URLs of the maintenance databases of two servers; ``settings`` are added to their configuration."""
    folders = [Path(tempfile.mkdtemp(prefix="kainite-2p-")) for _ in range(2)]
    with ExitStack() as stack:
        for folder in folders:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        settings = {"max_prepared_transactions": "50", **settings}
        first, second = (stack.enter_context(postgres(folder / "pg", **settings)) for folder in folders)
        yield first, second


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """Gives the URL of an empty database of a server; rolls back what is left prepared in it at the end."""
    name = unique("both").replace("-", "_")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    url = server.replace("/postgres?", f"/{name}?")
    try:
        yield url
    finally:
        with psycopg.connect(url, autocommit=True) as own:
            for (gid,) in own.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"):
                own.execute(f"ROLLBACK PREPARED '{gid}'")
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

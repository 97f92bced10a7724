"""Runs the demo's servers alone, for whoever tries things by hand: two PostgreSQL servers, Kinesis and DynamoDB.

The file gets their addresses as variables of a shell when all of them answer, so whoever waits for the file may begin.
At the end the servers are stopped, and their folder and the file are removed.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from kainite.base.errors import DemoError
from kainite_demo import services
from kainite_demo.postgres_server import postgres, programs
from kainite_demo.services import REGION


def serve(file: Path) -> None:
    """Runs the servers until the process is ended by a signal.

    Raises:
        DemoError: the file is there already or cannot be written, or a server does not start.
    """
    if file.exists():
        raise DemoError(f"{file} is there already: servers that run were started with it, or it is another file")
    if not file.parent.is_dir():
        raise DemoError(f"cannot write {file}: there is no folder {file.parent}")
    with _folder() as folder, _servers(folder) as variables:
        try:
            _write(file, variables)
            threading.Event().wait()
        finally:
            file.unlink(missing_ok=True)


def _sourced(file: Path) -> str:
    """Returns the file as a shell's ``.`` takes it: a name without a slash is looked for on the PATH."""
    return str(file) if "/" in str(file) else f"./{file}"


def _write(file: Path, variables: Mapping[str, str]) -> None:
    whole = file.with_name(f"{file.name}.new")
    try:
        whole.write_text("".join(f"export {name}={value}\n" for name, value in variables.items()), encoding="utf-8")
        # Before the file is there: whoever waits for it finds the line printed, and not in between its own.
        click.echo(
            f"kainite: the servers run until Ctrl-C; in another terminal: . {shlex.quote(_sourced(file))}", err=True
        )
        whole.replace(file)
    except OSError as error:
        raise DemoError(f"cannot write {file}: {error.strerror}") from error


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kainite-servers-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _servers(folder: Path) -> Iterator[Mapping[str, str]]:
    with (
        services.moto(folder / "moto.log") as address,
        postgres(folder / "source", wal_level="logical") as source,
        postgres(folder / "target") as target,
    ):
        yield {
            "AWS_ENDPOINT_URL": shlex.quote(address()),
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "nobody",
            "AWS_SECRET_ACCESS_KEY": "nobody",
            "AWS_EC2_METADATA_DISABLED": "true",
            "SOURCE": shlex.quote(source),
            "TARGET": shlex.quote(target),
            # psql and pg_dump of the servers' own version.
            "PATH": f'{shlex.quote(str(programs()))}:"$PATH"',
        }

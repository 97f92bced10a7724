"""A server of PostgreSQL for one run: it is there while the ``with`` lasts, and says why it does not start."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kainite.base.errors import DemoError
from kainite_demo.postgres_server import postgres, programs


@pytest.fixture
def folder() -> Iterator[Path]:
    """Gives a folder with a short path, below which a socket fits."""
    path = Path(tempfile.mkdtemp(prefix="kd-"))
    yield path
    shutil.rmtree(path)


def test_it_runs_with_the_settings_while_the_with_lasts(folder: Path) -> None:
    with postgres(folder / "pg", work_mem="5MB") as url, psycopg.connect(url) as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("5MB",)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)

    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    with (
        pytest.raises(DemoError, match=r"PostgreSQL's pg_ctl failed: .* contains errors$"),
        postgres(folder / "pg", no_such_setting="1"),
    ):
        pass


def test_a_path_that_is_too_long_for_a_socket_is_told(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match="too long a path for a socket; set TMPDIR"), postgres(tmp_path / ("x" * 100)):
        pass


@pytest.mark.parametrize("program", ["initdb", "pg_ctl", "pgbench"])
def test_its_programs_are_there(program: str) -> None:
    assert (programs() / program).is_file()

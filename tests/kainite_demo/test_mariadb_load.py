"""The load on MariaDB makes whole transactions of TPC-B."""

from __future__ import annotations

from click.testing import CliRunner

from kainite_demo import mariadb_load
from kainite_demo.invariant import Invariant
from kainite_demo.mariadb_tables import create_tables, fill
from kainite_demo.reading import count_of, reading


def test_the_load_makes_whole_transactions(mariadb: str) -> None:
    create_tables(mariadb, history_has_key=True)
    fill(mariadb, 1)
    words = {"source": mariadb, "clients": 2, "seconds": 3, "rate": 50, "scale": 1, "seed": 1}
    done = CliRunner().invoke(
        mariadb_load.main, [part for name, given in words.items() for part in (f"--{name}", str(given))]
    )
    assert done.exit_code == 0, done.output
    assert count_of(mariadb, "pgbench_history") > 0
    seen = Invariant()
    with reading(mariadb) as opened:
        seen.look(opened)
    assert seen.latest.transactions == count_of(mariadb, "pgbench_history")

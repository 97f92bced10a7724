"""A role of an apply job that has no right to the table of the comparisons is not asked for one."""

from __future__ import annotations

from urllib.parse import urlsplit

from kainite.replicate.verify_ledger import VerifyLedger
from kainite_spark.targets.mariadb.stop_requests import mariadb_stop_requests
from support.mariadb_server import run_script
from support.names import unique
from support.verify_sessions import session_of


def test_a_role_that_does_not_see_the_table_has_no_request(mariadb: str, mariadb_server: str) -> None:
    with session_of(mariadb) as session:
        ledger = VerifyLedger(session, "log/0")
        ledger.begin()
        ledger.ask()
    user, address = unique("u").replace("-", "_"), urlsplit(mariadb)
    database = address.path.strip("/")
    run_script(mariadb_server, f"CREATE USER {user}@localhost; CREATE TABLE {database}.other (a int)")
    run_script(mariadb_server, f"GRANT SELECT ON {database}.other TO {user}@localhost")
    limited = address._replace(netloc=f"{user}@{address.netloc.rpartition('@')[2]}").geturl()
    requests = mariadb_stop_requests(limited, "log/0")
    try:
        assert requests.look() is None
        run_script(mariadb_server, f"GRANT SELECT ON {database}.* TO {user}@localhost")
        requests.close()
        found = requests.look()
        assert found is not None
        assert found.number == 1
    finally:
        requests.close()
        run_script(mariadb_server, f"DROP USER {user}@localhost")

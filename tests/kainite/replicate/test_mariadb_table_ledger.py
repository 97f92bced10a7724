"""Names in MariaDB's ledger of single tables; its statements are tried in ``test_mariadb_table_load.py``."""

from __future__ import annotations

from kainite.replicate.mariadb_table_ledger import foreign_keys_lock, own_loads
from kainite.replicate.table_ledger import load_name


def test_the_loads_of_single_tables_of_a_log_lie_between_two_names_and_no_others_do() -> None:
    first, last = own_loads("log/0")
    for table in (("public", "item"), ("ÿ", "\uffff")):
        assert first <= load_name("log/0", table) <= last
    for other in ("log/0", "log/00", load_name("log/1", ("public", "item")), load_name("log", ("0", "item"))):
        assert not first <= other <= last


def test_who_makes_foreign_keys_of_another_log_or_database_is_not_waited_for() -> None:
    names = {foreign_keys_lock(database, log) for database in ("a", "b") for log in ("log/0", "log/1")}
    assert len(names) == 4
    assert all(len(name) <= 64 for name in names)

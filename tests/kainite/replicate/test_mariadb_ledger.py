"""Names of the locks of sessions."""

from __future__ import annotations

from kainite.replicate.mariadb_ledger import driver_lock, step_lock

_LONGEST = 64  # characters of a lock's name


def test_locks_are_of_one_database_and_log_and_fit() -> None:
    names = {
        driver_lock("a", "log/0"),
        driver_lock("b", "log/0"),
        driver_lock("a", "log/1"),
        step_lock("a", "log/0", 7),
    }
    assert len(names) == 4
    assert step_lock("a", "log/0", 7) == step_lock("a", "log/0") + "7"
    assert max(len(name) for name in (*names, step_lock("x" * 64, "y" * 255, 2**63 - 1))) <= _LONGEST

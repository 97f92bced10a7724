"""An error that carries more than its message shows the message alone, also in another process."""

from __future__ import annotations

import pickle

from kainite.base.errors import OtherLogError


def test_an_error_with_the_tables_of_other_logs_is_its_message() -> None:
    error = OtherLogError("table item is written by the log us", {"item": "us"})
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.others) == ("table item is written by the log us", {"item": "us"})
    assert str(error) == str(again)

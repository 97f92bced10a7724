"""Connections to PostgreSQL."""

from __future__ import annotations

from kainite_spark.targets.postgresql.transactions import opened
from support.stores import Stores


def test_a_silent_network_is_given_up_within_a_minute_unless_the_url_says_otherwise(stores: Stores) -> None:
    url = stores.open().database.url
    with opened(url) as ours, opened(f"{url}&tcp_user_timeout=0&keepalives_idle=300") as theirs:
        found = [connection.info.get_parameters() for connection in (ours, theirs)]
    names = ("tcp_user_timeout", "keepalives_idle", "keepalives_count")
    assert [[parameters[name] for name in names] for parameters in found] == [["40000", "20", "3"], ["0", "300", "3"]]

from __future__ import annotations

from kainite_spark.targets.opening import open_target
from kainite_spark.targets.sqlite.target import SqliteTarget
from support.tables import SHOP


def test_the_file_is_what_follows_the_scheme() -> None:
    for url, path in (("sqlite:///shop.db", "shop.db"), ("sqlite:////data/shop.db", "/data/shop.db")):
        target = open_target(url, SHOP)
        assert isinstance(target, SqliteTarget)
        assert target.path == path

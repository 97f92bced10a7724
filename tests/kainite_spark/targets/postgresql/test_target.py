"""PostgreSQL as a target, as the driver has it."""

from __future__ import annotations

import pickle

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite_spark.targets.opening import open_target
from support.stores import Stores


def test_nobody_there_is_unavailable(stores: Stores) -> None:
    store = stores.open()
    with pytest.raises(TargetUnavailableError):
        open_target("postgresql://nobody@127.0.0.1:1/none", store.catalogue).connect()


def test_a_target_travels_to_tasks(stores: Stores) -> None:
    store = stores.open()
    travelled = pickle.loads(pickle.dumps(store.target))
    session = stores.session(travelled)
    session.apply(store.fence, [store.unit(1, store.insert("audit", what="x", at=1))])
    assert store.rows("audit") == [("x", 1)]

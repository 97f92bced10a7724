"""One unit as a person looks at it."""

from __future__ import annotations

from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_detail import read_detail
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures
from support.main_log import MainLog


def delta(key: int, ordinal: int | None = None) -> Delta:
    return Delta("t", Operation.UPSERT, {"id": key}, {"id": key, "v": "x"}, {}, ordinal)


def test_a_unit_is_found_by_its_name_or_id_with_its_deltas() -> None:
    store = MemoryStore()
    log = MainLog(store, Signatures(None))
    log.append(log.fragment("T", delta(1, 0)))
    tid = log.unit("U", delta(2))
    detail = read_detail(store, log.partition, "U")
    assert detail == read_detail(store, log.partition, str(tid))
    assert detail is not None
    assert detail.shown_deltas(5) == ['upsert t key {"id":2} row {"id":2,"v":"x"}']
    assert detail.as_json()["uow"] == "U"
    opened = read_detail(store, log.partition, "T")
    assert opened is not None
    assert (opened.row.id, opened.before, opened.behind) == (None, [], [])
    assert opened.shown_deltas(5)[0].startswith("0: upsert t")
    assert read_detail(store, log.partition, "V") is None


def test_the_deltas_that_were_judged_anew_replace_the_others() -> None:
    store = MemoryStore()
    log = MainLog(store, Signatures(None))
    log.append(log.fragment("T", delta(1)))
    tid = log.expire("T")
    log.append(log.fragment("T", delta(2), ends=()))
    detail = read_detail(store, log.partition, "T")
    assert detail is not None
    assert (detail.row.id, detail.row.status, len(detail.deltas)) == (tid, UnitStatus.FAILED, 2)

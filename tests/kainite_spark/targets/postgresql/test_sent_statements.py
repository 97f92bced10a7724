"""What the answers to the statements of a transaction mean."""

from __future__ import annotations

import pytest

from kainite.base.errors import TargetRejectedError
from kainite.settings import ApplySettings, TargetTriggers
from support.stores import Stores


def test_a_trigger_may_refuse_and_may_not_swallow(stores: Stores) -> None:
    ddl = """
        CREATE TABLE t (id bigint PRIMARY KEY);
        CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.id = 2 THEN RAISE EXCEPTION 'no twos'; END IF;
            IF NEW.id = 3 THEN RETURN NULL; END IF;
            RETURN NEW; END $$;
        CREATE TRIGGER guard BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION guard();
    """
    store = stores.open(ddl, apply=ApplySettings(triggers=TargetTriggers.FIRE))
    outcomes = store.apply(*(store.unit(tid, store.insert("t", id=tid)) for tid in (1, 2, 3)))
    assert [outcome.status for outcome in outcomes] == ["committed", "failed", "failed"]
    assert "no twos" in (outcomes[1].cause or "")
    assert "met 0 rows" in (outcomes[2].cause or "")


def test_a_refusal_is_one_line_with_the_servers_detail(stores: Stores) -> None:
    store = stores.open()
    store.apply(store.unit(1, store.insert("region", id=1, name="n")))
    with pytest.raises(TargetRejectedError) as refusal:
        store.session.apply(store.fence, [store.unit(2, store.insert("region", id=1, name="n"))])
    assert str(refusal.value) == (
        'region: duplicate key value violates unique constraint "region_pkey"; Key (id)=(1) already exists.'
    )

"""A source's schema by pg_dump, taken apart."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import SettingsError, SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ledger import STATEMENT_STAGE, StatementStep
from kainite.replicate.schema_dump import DumpEntry, dump_schema, entries_of, plain_sql
from kainite_demo.postgres_server import programs

DUMP = r"""--
-- PostgreSQL database dump
--

\restrict abc

SET statement_timeout = 0;
SET default_tablespace = '';

--
-- Name: item item_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (id);


--
-- Name: by_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX by_name ON public.item USING btree (name);


--
-- PostgreSQL database dump complete
--

\unrestrict abc
"""
SCHEMA = """
    CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE left_out (id int PRIMARY KEY);
    CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent, l int REFERENCES left_out);
    CREATE VIEW seen AS SELECT * FROM left_out;
"""


def test_objects_are_taken_apart_by_their_comments() -> None:
    assert list(entries_of(DUMP)) == [
        DumpEntry("item item_pkey", "CONSTRAINT", "public",
                  "ALTER TABLE ONLY public.item\n    ADD CONSTRAINT item_pkey PRIMARY KEY (id);"),
        DumpEntry("by_name", "INDEX", "public", "CREATE INDEX by_name ON public.item USING btree (name);"),
    ]  # fmt: skip
    assert "restrict" not in plain_sql(DUMP)
    assert "timeout" not in plain_sql(DUMP)
    assert "SET default_tablespace" in plain_sql(DUMP)


def test_what_is_not_published_is_left_out_with_what_names_it(
    source: SourceSlot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs()}:/usr/bin:/bin")
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute(SCHEMA.encode())
        dump = dump_schema(connection, source.url, ["public.parent", "public.child"])
    assert "CREATE TABLE public.child" in dump.script
    assert "left_out" not in dump.script
    assert "item" not in dump.script
    assert dump.left_out == ("public.child child_l_fkey",)
    stages = [(step.stage - STATEMENT_STAGE, step.table) for step in dump.steps]
    assert stages == [(0, "child"), (0, "parent"), (2, "child")]
    last = dump.steps[-1].work
    assert isinstance(last, StatementStep)
    assert "REFERENCES public.parent(id)" in last.sql
    assert len({step.number for step in dump.steps}) == 3


def test_a_missing_or_failing_pg_dump_is_told(source: SourceSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        monkeypatch.setenv("PATH", f"{programs()}:/usr/bin:/bin")
        with pytest.raises(SourceError, match=r"pg_dump: .*nonexistent"):
            dump_schema(connection, "postgresql:///x?host=/nonexistent", ["public.item"])
        monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(SettingsError, match="pg_dump is not installed"):
            dump_schema(connection, source.url, ["public.item"])

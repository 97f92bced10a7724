"""The target of a settings file is taken for the file's log, at the start and when tables come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError
from kainite.settings import Settings, load
from kainite.settings.targets import of_target
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.several import catalogue_of
from kainite_spark.configured_target import check_emptied, ledger_of, prepared_target
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.micro_batches import MicroBatches
from kainite_spark.driver.payloads import Payloads
from kainite_spark.targets.contract import Target
from kainite_spark.targets.postgresql.target import PostgresTarget
from kainite_spark.targets.sqlite.target import SqliteTarget
from support.inline_runner import InlineRunner
from support.stores import Database

STOP = threading.Event()


class Files:
    """Settings files of several logs that are applied to one target."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._lines = f"applicationName=app\nregionName=us-east-1\nlogTableName=log\ntarget={url}\n"
        self.database = Database(url)

    def of(self, partition: str, *more: str) -> Settings:
        path = self._folder / f"{partition}.properties"
        path.write_text("\n".join([self._lines, f"logPartition={partition}", *more]))
        return load(path, needs=())


@pytest.fixture(params=["sqlite", "postgres"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    url = f"sqlite:///{tmp_path}/t.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    found = Files(tmp_path, url)
    found.database.run("CREATE TABLE item (id bigint PRIMARY KEY)")
    return found


def begin(configured: Settings) -> None:
    with prepared_target(configured, MemoryStore(), STOP):
        pass


@contextmanager
def waiting(configured: Settings) -> Iterator[Callable[[int], None]]:
    """Prepares an apply job; gives what makes it the one that applies, under a generation."""
    store, partition = MemoryStore(), configured.log.partition
    with prepared_target(configured, store, STOP) as (target, _, tables):
        environment = ApplyEnvironment(
            configured.apply, store, partition, "a job", target, InlineRunner(store, partition, target),
            ledger_of(configured), tables=tables,
        )  # fmt: skip

        def apply(generation: int) -> None:
            micro_batches = MicroBatches(environment, generation, Payloads(0), JobMetrics())
            micro_batches.raise_generation(None)
            micro_batches.settle_tables()

        yield apply


def test_the_apply_job_of_another_log_is_refused(files: Files) -> None:
    """Shows the first log has its table also while its job is stopped."""
    begin(files.of("eu"))
    with pytest.raises(CatalogueError, match=r"item of the target is written by the log log/eu, and log/us would"):
        begin(files.of("us"))
    begin(files.of("eu"))


def test_a_table_that_both_files_share_is_written_by_both(files: Files) -> None:
    begin(files.of("eu", "targetSharedTables=item"))
    begin(files.of("us", "targetSharedTables=item"))


def test_of_several_targets_one_has_the_shared_table_and_the_jobs_of_both_begin(files: Files, tmp_path: Path) -> None:
    files.database.run("CREATE TABLE own (id bigint PRIMARY KEY)")
    url = files.database.url
    for partition in ("eu", "us"):
        path = tmp_path / "several.properties"
        path.write_text(
            f"applicationName=app\nregionName=us-east-1\nlogTableName=log\nlogPartition={partition}\n"
            f"target.shop={url}\ntarget.shop.tables=item\n"
            f"target.crm={url}\ntarget.crm.tables={'own' if partition == 'eu' else 'no*'}\ntargetSharedTables=item\n"
        )
        begin(of_target(load(path, needs=()), "shop"))
        begin(of_target(load(path, needs=()), "crm"))


def test_logs_whose_files_name_their_own_tables_share_a_target(files: Files) -> None:
    """Shows none of them takes, or is refused for, a table of the other one."""
    files.database.run("CREATE TABLE visit (id bigint PRIMARY KEY)")
    for log, table in (("eu", "item"), ("us", "visit"), ("eu", "item")):
        begin(files.of(log, f"targetTables={table}"))
    with pytest.raises(CatalogueError, match=r"item of the target is written by the log log/eu, and log/us would"):
        begin(files.of("us", "targetTables=visit, it*"))


def test_a_load_empties_no_table_that_the_file_does_not_name(tmp_path: Path, postgres: str) -> None:
    files = Files(tmp_path, postgres)
    files.database.run("CREATE TABLE item (id bigint PRIMARY KEY); CREATE TABLE visit (id bigint PRIMARY KEY)")
    configured = files.of("eu", "targetTables=item")
    catalogue = catalogue_of(files.of("eu"))
    assert catalogue is not None
    check_emptied(configured, catalogue, [("public", "item")])
    with pytest.raises(CatalogueError, match=r"public\.visit is not among the tables of targetTables"):
        check_emptied(configured, catalogue, [("public", "item"), ("public", "visit")])
    with pytest.raises(CatalogueError, match=r"crm\.item is not among the tables of targetTables"):
        check_emptied(configured, catalogue, [("crm", "item")])


def test_a_table_that_comes_later_is_taken_and_one_of_another_log_is_not_used(files: Files) -> None:
    with prepared_target(files.of("eu"), MemoryStore(), STOP) as (_, current, _):
        files.database.run("CREATE TABLE later (id bigint PRIMARY KEY)")
        assert tables_of(current.read_again(STOP)) == {"item": ["id"], "later": ["id"]}
        with pytest.raises(CatalogueError, match="later"):
            begin(files.of("us", "targetSharedTables=item"))
        files.database.run("CREATE TABLE other (id bigint PRIMARY KEY)")
        begin(files.of("us", "targetSharedTables=item, later"))
        assert tables_of(current.read_again(STOP)) == {"item": ["id"], "later": ["id"]}, (
            "its units of that table fail, as of one that is not there"
        )


def test_a_job_goes_on_with_its_own_changes_beside_a_new_table_of_another_log(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    with prepared_target(files.of("eu"), MemoryStore(), STOP) as (_, current, _):
        files.database.run("CREATE TABLE other (id bigint PRIMARY KEY); CREATE TABLE later (id bigint PRIMARY KEY);"
                           " ALTER TABLE item ADD COLUMN v bigint")  # fmt: skip
        begin(files.of("us", "targetTables=other"))
        assert tables_of(current.read_again(STOP)) == {"item": ["id", "v"], "later": ["id"]}
        [told] = [
            vars(one)["kainite_fields"] for one in caplog.records if one.message == "table of another log left out"
        ]
        assert (told["table"].rpartition(".")[2], told["log"]) == ("other", "log/us")
        assert current.read_again(STOP) is None
        with pytest.raises(CatalogueError, match="later of the target is written by the log log/eu"):
            begin(files.of("us", "targetTables=other, later"))
        files.database.run("CREATE TABLE third (id bigint PRIMARY KEY)")
        assert tables_of(current.read_again(STOP)).keys() == {"item", "later", "third"}
    with pytest.raises(CatalogueError, match="other of the target is written by the log log/us, and log/eu would"):
        begin(files.of("eu"))


@pytest.mark.parametrize("related", ["mine", "other"])
def test_a_new_table_of_another_log_that_is_related_to_an_own_one_is_refused(files: Files, related: str) -> None:
    parent = "other" if related == "mine" else "item"
    with prepared_target(files.of("eu"), MemoryStore(), STOP) as (_, current, _):
        if related == "mine":
            files.database.run("CREATE TABLE other (id bigint PRIMARY KEY)")
        files.database.run(f"CREATE TABLE {related} (id bigint PRIMARY KEY REFERENCES {parent} (id))")
        begin(files.of("us", f"targetSharedTables=item{', mine' if related == 'mine' else ''}"))
        assert current.read_again(STOP) is None


def test_a_table_that_the_job_had_and_that_another_log_has_got_is_refused(files: Files) -> None:
    with prepared_target(files.of("eu"), MemoryStore(), STOP) as (_, current, _):
        files.database.run("DELETE FROM kainite_log_table; ALTER TABLE item ADD COLUMN v bigint")
        begin(files.of("us"))
        assert current.read_again(STOP) is None


def tables_of(target: Target | None) -> Mapping[str, Sequence[str]]:
    """Returns the tables that a target has been opened with, and their columns."""
    assert isinstance(target, SqliteTarget | PostgresTarget)
    return {name: list(table.columns) for name, table in target.schema.catalogue.tables.items()}


def test_a_job_that_has_waited_keeps_a_table_that_came_meanwhile(files: Files) -> None:
    """Shows it frees no table that the job before it has taken, and that its own file names."""
    with waiting(files.of("eu")) as apply:
        files.database.run("CREATE TABLE later (id bigint PRIMARY KEY)")
        begin(files.of("eu"))
        apply(1)
        with pytest.raises(CatalogueError, match="later of the target is written by the log log/eu"):
            begin(files.of("us", "targetTables=later"))


def test_a_job_that_has_waited_ends_where_another_log_has_got_its_table_meanwhile(files: Files) -> None:
    """Shows a job with another settings file may have given it up while this one waited."""
    files.database.run("CREATE TABLE visit (id bigint PRIMARY KEY)")
    with waiting(files.of("eu", "targetTables=item")) as apply:
        with waiting(files.of("eu", "targetTables=visit")) as apply_another:
            apply_another(1)
        begin(files.of("us", "targetTables=item"))
        with pytest.raises(CatalogueError, match="item of the target is written by the log log/us"):
            apply(2)

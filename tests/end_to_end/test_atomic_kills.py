"""SIGKILL of the apply job's driver, JVM and task workers, and of each server, at each step of ``targetCommit =
atomic``.

All processes are real: daemon, apply job on Spark, PostgreSQL and MariaDB (:mod:`support.together_processes`). Whoever
looks at the targets meanwhile sees each unit whole, once and in order, and never more than one transaction in one
target alone. At the end both targets have what the log has as committed, none has what one of them refuses, and nothing
is left prepared. CI kills at some steps; ``-m long`` everybody at each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.killed_servers import WITH_BINLOG
from support.names import unique
from support.pipeline import Pipeline
from support.together_processes import Step, Struck, TogetherProcesses, together_processes

pytestmark = pytest.mark.xdist_group("spark")

POSTGRESQL_FIRST: Final = {"shop": "postgresql", "crm": WITH_BINLOG}
MARIADB_FIRST: Final = {"shop": WITH_BINLOG, "crm": "postgresql"}
SOME: Final = (
    (Step.DECIDED, Struck.HOST), (Step.BEFORE_CRM_COMMITS, Struck.CRM), (Step.SHOP_PREPARED, Struck.WORKERS),
)  # fmt: skip


@contextmanager
def processes(
    kinds: Mapping[str, str], kinesis: Any, dynamodb: Any, endpoint: str, folder: Path, consistency: str = "prefix"
) -> Iterator[TogetherProcesses]:
    name = unique("together")

    def pipeline(address: str, shop: Any) -> Pipeline:
        return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, address, shop, folder, shards=1)

    with together_processes(kinds, pipeline, endpoint, consistency) as made:
        yield made
    kinesis.delete_stream(StreamName=name)


@pytest.mark.timeout(600)
def test_processes_are_killed_at_some_steps(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> None:
    with processes(POSTGRESQL_FIRST, kinesis, dynamodb, moto_endpoint, tmp_path) as made:
        for step, struck in SOME:
            made.strike(step, struck)
        made.end()


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("struck", list(Struck))
@pytest.mark.parametrize(
    ("kinds", "consistency"),
    [pytest.param(POSTGRESQL_FIRST, "prefix", id="postgresql first"),
     pytest.param(MARIADB_FIRST, "conflict", id="mariadb first")],
)  # fmt: skip
def test_somebody_is_killed_at_each_step(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path, kinds: Mapping[str, str], consistency: str,
    struck: Struck,
) -> None:  # fmt: skip
    with processes(kinds, kinesis, dynamodb, moto_endpoint, tmp_path, consistency) as made:
        for step in Step:
            made.strike(step, struck)
        made.end()

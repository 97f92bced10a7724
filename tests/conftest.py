"""Gives the tests real parts: moto's server, PostgreSQL, Spark; each starts once in a test process."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from kainite.base.redaction import forget
from kainite_demo.services import SHORT_LIVED_JVM
from support.dynamodb_doubles import Double, Doubles
from support.ended_runs import pytest_sessionstart
from support.leftovers import pytest_collection_finish, pytest_runtest_logstart, pytest_runtest_teardown
from support.long_first import pytest_collection_modifyitems
from support.names import unique

__all__ = [
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_runtest_logstart",
    "pytest_runtest_teardown",
    "pytest_sessionstart",
]

warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# Also those of `kainite apply` as a process: Spark's JVMs live too short for the second compiler, whose threads take
# half of their processor time.
os.environ.setdefault("SPARK_LAUNCHER_OPTS", SHORT_LIVED_JVM)
os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED_JVM)

# Hypothesis limits neither the time of an example nor that of making inputs: both limits would measure the machine. The
# servers of other tests take its cores meanwhile, and in a fresh clone the first text that is made builds the tables of
# Unicode, which takes seconds. A test that hangs is ended by its timeout. The profile "ci" has neither limit either.
hypothesis.settings.register_profile(
    "without-limits-of-time", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# CI has 30 minutes on two cores for all tests; make test tries Hypothesis' own number of examples.
hypothesis.settings.register_profile("brief", hypothesis.settings.get_profile("ci"), max_examples=25)
hypothesis.settings.load_profile("brief" if os.environ.get("CI") else "without-limits-of-time")


@pytest.fixture(autouse=True)
def _no_known_secrets() -> Iterator[None]:
    """Forgets the secrets of a test's settings: in a later test they may be ordinary words."""
    yield
    forget()


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Gives the address of moto's server (Kinesis and DynamoDB over HTTP), in this process."""
    from moto.server import ThreadedMotoServer

    from kainite_demo import moto_requests, moto_shards

    moto_requests.install()
    moto_shards.install()
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def dynamodb_doubles(moto_endpoint: str) -> Iterator[Doubles]:
    """Gives all doubles of DynamoDB; each starts when a test asks for it."""
    with ExitStack() as stack:
        yield Doubles(moto_endpoint, stack)


@pytest.fixture(scope="session")
def dynamodb(request: pytest.FixtureRequest, dynamodb_doubles: Doubles) -> Any:
    """Gives a client of moto, or of the double that ``on_each_double`` names."""
    return dynamodb_doubles.client(getattr(request, "param", Double.MOTO))


@pytest.fixture
def kinesis(moto_endpoint: str) -> Any:
    """Gives a client of the test's own: a ``StreamClient`` changes how its client reads records."""
    import boto3

    return boto3.client("kinesis", endpoint_url=moto_endpoint, region_name="us-east-1")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Gives the URL of a PostgreSQL server's maintenance database; a target, and a source that decodes logically."""
    from kainite_demo.postgres_server import postgres

    folder = Path(tempfile.mkdtemp(prefix="kainite-pg-"))
    with postgres(folder / "pg", wal_level="logical", max_replication_slots="50") as url:
        yield url
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    """Gives the URL of an empty database of the test's own."""
    import psycopg

    name = unique("test").replace("-", "_")
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    yield postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """Gives the address of a MariaDB server's own database."""
    from support.mariadb_server import running

    folder = Path(tempfile.mkdtemp(prefix="kainite-ma-"))
    with running(folder / "server") as url:
        yield url
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb_source_server() -> Iterator[str]:
    """Gives the address of a MariaDB server's own database; the server writes a binlog that an extractor reads."""
    from support.mariadb_source import mariadb_with_binlog

    folder = Path(tempfile.mkdtemp(prefix="kainite-mb-"))
    with mariadb_with_binlog(folder / "server") as url:
        yield url
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mariadb(mariadb_server: str) -> Iterator[str]:
    """Gives the address of an empty database of the test's own; texts there ignore case, as in most databases."""
    from support.mariadb_server import drop_database, run_script

    name = unique("test").replace("-", "_")
    run_script(mariadb_server, f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    yield mariadb_server.replace("/mysql?", f"/{name}?")
    drop_database(mariadb_server, name)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Gives a Spark session in local mode, two cores; tests that use it carry ``xdist_group("spark")``."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2,2]")
        .appName("kainite-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()

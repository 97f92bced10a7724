"""``kainite verify`` as a user runs it, while source and target live."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.cli.main import main
from kainite.log.state.loading import load_state
from kainite.operations.carrying_out import Operations
from kainite.replicate.replica_facts import read_replica
from kainite_spark import verify_cli, verify_of_file
from kainite_spark.verify.repeating import RepeatedComparison, Repeating
from support.mariadb_loading import mariadb_following, mariadb_loading
from support.postgresql_source import source
from support.replica import replica
from support.replicas import run

__all__ = ["source"]
TABLES = """
    CREATE TABLE account (id int PRIMARY KEY, owner text, secret text);
    CREATE TABLE line (id int PRIMARY KEY, v text);
"""
FILL = "INSERT INTO account SELECT n, 'owner ' || n, 's3cret ' || n FROM generate_series(1, 500) n"


def file_of(source: SourceSlot, target: str, folder: Path, **more: str) -> str:
    values = {
        "applicationName": "shop", "streamName": "shop", "target": target, "logTableName": "log", "unitsOfWork": "true",
        "extractorName": f"{PROGRAM} --source {source.url!r} --slot {source.slot} --publication changes",
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "uowOrder": "dense", "regionName": "us-east-1",
        "applyMaster": "local[2]",
    } | more  # fmt: skip
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return str(path)


def kainite(*words: str) -> tuple[int, str]:
    """Returns the exit code and what was printed: on standard error only where nothing else was."""
    result = CliRunner().invoke(main, words)
    return result.exit_code, result.stdout or result.stderr


def test_what_differs_is_printed_and_the_exit_code_tells(source: SourceSlot, postgres: str, tmp_path: Path) -> None:
    file = file_of(source, postgres, tmp_path)
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        with made.living():
            code, output = kainite("verify", "-p", file)
            assert (code, output.split(":")[0]) == (0, "equal")
            assert "2 tables, 500 rows as of" in output
            run(postgres, "UPDATE account SET secret = 'other' WHERE id = 9", "INSERT INTO line VALUES (1, NULL)")
            code, output = kainite("verify", "-p", file)
            assert code == 1
            assert "changed: public.account id=9\n    secret: source 's3cret 9' | target 'other'\n" in output
            assert "extra: public.line id=1\n    id: target '1'\n    v: target NULL\n" in output
            assert output.splitlines()[-1].startswith("different: 2 tables, 500 rows as of ")
            masked = kainite("verify", "-p", file, "--values", "masked", "--table", "account")[1]
            assert "s3cret" not in masked
            assert "    secret: source '8 characters, sha256 " in masked
            code, output = kainite("verify", "-p", file, "--json", "--values", "none", "--rows", "1")
            found = json.loads(output)
            assert (code, found["verdict"], len(found["rows"])) == (1, "different", 1)
            assert found["rows"][0]["source"] in (["…"], None)
            assert [table["extra"] for table in found["tables"]] == [0, 1]
            assert found["held_ms"] < 5_000
            shown = kainite("replicate", "status", "-p", file)[1]
            assert "compared with the source at " in shown
            assert "2 differ, in " in shown
            assert "no table public.nothing" in kainite("verify", "-p", file, "--table", "nothing")[1]


def test_a_repair_says_what_it_does_asks_and_stands_in_the_history(
    source: SourceSlot, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_of(source, postgres, tmp_path)
    with replica(source, postgres, TABLES) as made:
        monkeypatch.setattr(Operations, "log", property(lambda _: (made.store, "0")))
        run(source.url, FILL)
        made.catch_up(1)
        with made.living():
            run(postgres, "UPDATE account SET secret = 'other' WHERE id IN (9, 10)", "DELETE FROM account WHERE id = 7",
                "INSERT INTO line VALUES (1, NULL)")  # fmt: skip
            code, output = kainite("verify", "-p", file, "--repair", "--dry-run", "--rows", "1", "--values", "masked")
            assert code == 1
            assert output.splitlines()[-4:][1:] == [
                "would overwrite 2 rows of public.account",
                "would insert 1 row of public.account",
                "would delete 1 row of public.line",
            ]
            result = CliRunner().invoke(main, ["verify", "-p", file, "--repair"], input="n\n")
            assert (result.exit_code, "Set 4 rows of the target to what" in result.stdout) == (1, True)
            assert made.store.read_requests("0") == []
            assert "--repair --json needs --yes" in kainite("verify", "-p", file, "--repair", "--json")[1]
            assert "belong to --repair" in kainite("verify", "-p", file, "--yes")[1]
            code, output = kainite("verify", "-p", file, "--repair", "--yes", "--json", "--why", "by hand")
            found = json.loads(output)
            assert (code, found["verdict"], found["repair"]["rows"]) == (0, "equal", 4)
            assert found["repair"]["status"] == "committed"
            assert "nothing to repair" in kainite("verify", "-p", file, "--repair")[1]
            (noted,) = load_state(made.store, "0").operations.all()
            assert (noted.what, noted.why, noted.result) == ("repair rows", "by hand", "done")
            assert noted.about == f"4 rows by unit {found['repair']['unit']}"


def test_a_mariadb_target_is_compared_with_the_same_options(
    source: SourceSlot, mariadb_server: str, tmp_path: Path
) -> None:
    tables = ["CREATE TABLE account (id int PRIMARY KEY, owner text, secret text)"]
    theirs = ["CREATE TABLE account (id int PRIMARY KEY, owner longtext, secret longtext)"]
    with (
        mariadb_loading(source, mariadb_server, tables, theirs) as world,
        mariadb_following(world) as follower,
        follower.living(),
    ):
        file = file_of(source, world.ends.target, tmp_path)
        run(source.url, FILL)
        code, output = kainite("verify", "-p", file)
        assert (code, output.split(":")[0]) == (0, "equal")
        world.change_target("UPDATE account SET secret = 'other' WHERE id = 9", "DELETE FROM account WHERE id = 7")
        code, output = kainite("verify", "-p", file, "--table", "account")
        assert code == 1
        assert "changed: public.account id=9\n    secret: source 's3cret 9' | target 'other'\n" in output
        assert "missing: public.account id=7\n" in output
        assert "s3cret" not in kainite("verify", "-p", file, "--values", "masked")[1]
        found = json.loads(kainite("verify", "-p", file, "--json", "--rows", "1")[1])
        assert (found["verdict"], len(found["rows"]), found["held_ms"] < 5_000) == ("different", 1, True)
        assert "2 differ, in " in kainite("replicate", "status", "-p", file)[1]
        code, output = kainite("verify", "-p", file, "--repair", "--dry-run")
        assert (code, "would insert 1 row of public.account" in output) == (1, True)
        assert "no table nothing" in kainite("verify", "-p", file, "--table", "nothing")[1]


def test_settings_under_which_the_log_tells_no_point_are_refused(
    source: SourceSlot, postgres: str, tmp_path: Path
) -> None:
    file = file_of(source, postgres, tmp_path, uowOrder="arrival")
    code, output = kainite("verify", "-p", file)
    assert (code, "needs uowOrder = dense" in output) == (1, True)


def test_a_repair_that_would_delete_rows_of_other_logs_is_refused(
    source: SourceSlot, postgres: str, tmp_path: Path
) -> None:
    file = file_of(source, postgres, tmp_path, targetSharedTables="account")
    code, output = kainite("verify", "-p", file, "--repair", "--dry-run")
    assert (code, "targetSharedTables names tables with rows of other logs" in output) == (1, True)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_large_tables_are_compared_by_spark(
    source: SourceSlot, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_of_file, "SMALL_BYTES", 1024)
    file = file_of(source, postgres, tmp_path)
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        with made.living():
            run(postgres, "DELETE FROM account WHERE id = 250")
            code, output = kainite("verify", "-p", file)
    assert code == 1
    assert "missing: public.account id=250\n" in output


def test_comparisons_are_made_again_and_again_until_nobody_wants_them(
    source: SourceSlot, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_of(source, postgres, tmp_path, verifyEverySeconds="60")
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        with made.living(), monkeypatch.context() as patched:
            patched.setattr(verify_cli, "Repeating", stops_after(1))
            assert kainite("verify", "--every", "-p", file)[0] == 0  # as a duty's command has it
        found = read_replica(postgres, "log/0")
        assert (found.verdict, found.every, found.is_late) == ("equal", 60.0, False)
        assert kainite("verify", "--every", "never", "-p", file)[0] == 0
        assert read_replica(postgres, "log/0").every is None
        assert "is no time such as" in kainite("verify", "-p", file, "--every", "soon")[1]
        assert "compares all tables" in kainite("verify", "-p", file, "--every", "1d", "--table", "line")[1]


def stops_after(rounds: int) -> Callable[..., Repeating]:
    """Returns what makes comparisons that are repeated so often, without a pause."""

    def made(comparison: RepeatedComparison, every: float, _: object) -> Repeating:
        left = iter([False] * rounds)
        return Repeating(comparison, every, lambda _: next(left, True))

    return made

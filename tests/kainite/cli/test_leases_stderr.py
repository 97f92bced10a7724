"""What children last wrote to standard error: from the daemon's endpoint to the command."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner, Result

from kainite.base.redaction import learn
from kainite.cli.main import main
from kainite.observe.health import WorkerFacts
from kainite.observe.publishing import publishing
from kainite.observe.shard_status import ShardStatus
from kainite.settings import load
from kainite.verdict.health_page import ChildWords, ask_child_words
from support.ports import free_port

WELL = WorkerFacts(leases=1, reached=1)
TALKS = ShardStatus("s-1", "PROCESSING", pid=7, stderr="b hush-hush", stderr_lines=("a", "b hush-hush"))
ENDED = ShardStatus("s-2", "BACKING_OFF", stderr_lines=("died",))


def command(file: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["leases", "stderr", "-p", str(file), *words])


async def test_the_lines_come_from_the_daemon_that_reads_the_shard(
    tmp_path: Path,
) -> None:
    learn(["hush-hush"])
    port, file = free_port(), tmp_path / "app.properties"
    file.write_text(f"applicationName = orders\nregionName = us-east-1\nmetricsLevel = NONE\nmetricsPort = {port}\n")
    async with publishing(load(file, needs=("applicationName",)), lambda: (TALKS, ENDED), lambda: WELL):
        nobody = ("127.0.0.1", free_port())
        found = await asyncio.to_thread(ask_child_words, [nobody, ("127.0.0.1", port)])
        everything = await asyncio.to_thread(command, file)
        one = await asyncio.to_thread(command, file, "s-2", "--json")
        none = await asyncio.to_thread(command, file, "s-9")
    assert found["s-2"] == ChildWords("BACKING_OFF", None, ("died",))
    assert (found["s-1"].pid, found["s-1"].lines[0]) == (7, "a")
    assert "hush" not in found["s-1"].lines[1]
    assert everything.stdout.splitlines()[:2] == ["s-1  PROCESSING  pid 7", "  a"]
    assert "s-2  BACKING_OFF  no child\n  died\n" in everything.stdout
    assert '"lines": [\n      "died"' in one.stdout
    assert '"s-1"' not in one.stdout
    assert (none.exit_code, "no daemon that was asked reads s-9" in none.stderr) == (1, True)
    assert f"no daemon that was asked (127.0.0.1:{port}) answers" in (await asyncio.to_thread(command, file)).stdout


def test_a_daemon_of_an_earlier_release_tells_of_none() -> None:
    assert ask_child_words([("127.0.0.1", free_port())]) == {}

"""``kainite log serve`` as a process: programs use it, another one takes over when it is killed, daemons append."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import kainite.waltz
from kainite.waltz.context import TransactionBuilder, TransactionContext
from support.application_world import Ledger
from support.certificates import Authority
from support.names import unique
from support.ports import free_port
from support.waiting import eventually

LIMIT = 60.0


@pytest.fixture
def properties(tmp_path: Path, moto_endpoint: str) -> Path:
    path = tmp_path / "app.properties"
    path.write_text(
        f"streamName = s\napplicationName = {unique('app')}\n"
        f"regionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
        "logApplications = 2\nlogLeaseMillis = 1000\n"
    )
    return path


@contextlib.asynccontextmanager
async def log_serve(properties: Path, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs the command until the end; it need not have begun to serve yet."""
    command = [sys.executable, "-m", "kainite", "log", "serve", "-p", str(properties)]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env={**os.environ, **environment}
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(LIMIT):
            while b"log service ready" not in (line := await process.stderr.readline()):
                assert line, "kainite log serve has ended"
        draining = asyncio.create_task(process.stderr.read())
        yield process
        if process.returncode is None:
            process.terminate()
        assert await asyncio.wait_for(process.wait(), LIMIT) in (0, -signal.SIGKILL)
        await draining
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def page(address: str) -> str:
    try:
        with urllib.request.urlopen(address) as answer:
            return str(answer.read(), "utf-8")
    except urllib.error.HTTPError as error:  # health that is not well
        with error:
            return str(error.read(), "utf-8")


class Named(TransactionContext):
    def __init__(self, name: str) -> None:
        self._name = name

    async def execute(self, builder: TransactionBuilder) -> bool:
        builder.write_lock("name", self._name)
        builder.data = self._name.encode()
        return True


async def test_programs_use_the_log_and_go_on_when_its_owner_is_killed(properties: Path) -> None:
    ledgers, port = [Ledger(), Ledger()], free_port()
    async with contextlib.AsyncExitStack() as stack:
        first = await stack.enter_async_context(log_serve(properties, KAINITE_METRICS_PORT=str(port)))
        logs = [await stack.enter_async_context(kainite.waltz.connect(properties, ledger)) for ledger in ledgers]
        async with asyncio.timeout(LIMIT):
            assert all([await log.submit(Named(f"before {number}")) for number, log in enumerate(logs)])
        assert "kainite_log_owner" in await asyncio.to_thread(page, f"http://127.0.0.1:{port}/metrics")
        assert '"leases": 0' in await asyncio.to_thread(page, f"http://127.0.0.1:{port}/health")
        await stack.enter_async_context(log_serve(properties))
        submitting = [asyncio.create_task(log.submit(Named(f"while {number}"))) for number, log in enumerate(logs)]
        first.kill()
        assert await asyncio.wait_for(asyncio.gather(*submitting), LIMIT) == [True, True]
        other = Ledger()
        async with kainite.waltz.connect(properties, other, partition=1) as log, asyncio.timeout(LIMIT):
            assert await log.submit(Named("elsewhere"))
        for log in logs:
            await asyncio.wait_for(log.applied(3), LIMIT)
    assert ledgers[0].entries == ledgers[1].entries
    assert sorted(ledgers[0].entries) == [b"before 0", b"before 1", b"while 0", b"while 1"]
    assert other.entries == [b"elsewhere"]


async def test_the_program_of_the_documentation_runs(properties: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "log-service.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    async with log_serve(properties):
        for said in ("10", "20"):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, cwd=properties.parent, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await asyncio.wait_for(process.communicate(), LIMIT)
            assert output.decode().split() == [said]


async def test_certificates_are_read_again_at_sighup_and_a_broken_key_is_told(properties: Path, tmp_path: Path) -> None:
    signed, port = Authority(tmp_path, "authority").sign("host"), free_port()
    files = {"KAINITE_LOG_CERTIFICATE_FILE": signed.certificate, "KAINITE_LOG_KEY_FILE": signed.key}
    metrics, health = (f"http://127.0.0.1:{port}/{name}" for name in ("metrics", "health"))

    async def shows(address: str, text: str) -> None:
        await asyncio.to_thread(eventually, lambda: text in page(address))

    environment = {name: str(path) for name, path in files.items()}
    async with log_serve(properties, KAINITE_METRICS_PORT=str(port), **environment) as process:
        await shows(metrics, "kainite_certificate_expiry_seconds 8")  # a day has 86,400
        await shows(metrics, "kainite_access_files_read_total 0.0")
        process.send_signal(signal.SIGHUP)
        await shows(metrics, "kainite_access_files_read_total 1.0")
        key = signed.key.read_bytes()
        signed.key.write_bytes(key[:40])
        await shows(health, "logCertificateFile")
        await shows(metrics, "kainite_access_files_refused_total 1.0")
        signed.key.write_bytes(key)
        await shows(metrics, "kainite_access_files_read_total 2.0")
        await shows(health, '"healthy": true')

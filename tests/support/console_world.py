"""``kainite console`` as a process, and who asks it over HTTP as a browser does."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode, urlsplit

from kainite.store.dynamodb import DynamoDBStore
from support import ready_kainite
from support.http_double import DoubleServer
from support.names import unique
from support.ready_kainite import ReadyCommand

LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """An answer of the console; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class ServedConsole:
    """A console that serves."""

    url: str
    pid: int

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    async def ask(
        self, path: str, method: str = "GET", body: Mapping[str, str] | None = None, **headers: str
    ) -> PageAnswer:
        """Asks for a page; underscores in the names of headers become hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await asyncio.to_thread(_asked, self.host, path, method, urlencode(body or {}), named)

    async def send(self, path: str, body: Mapping[str, str], **headers: str) -> PageAnswer:
        """Sends a form as a page of the console's own does."""
        own = {"Origin": f"http://{self.host}", "Sec_Fetch_Site": "same-origin"}
        return await self.ask(path, "POST", body, **{**own, **headers})


def made_log(dynamodb: Any, endpoint: str, folder: Path) -> tuple[DynamoDBStore, Path]:
    """Makes an empty log, and a settings file that names it; returns both."""
    name, file = unique("log"), folder / "app.properties"
    file.write_text(
        f"applicationName = app\nregionName = us-east-1\ndynamoDBEndpoint = {endpoint}\n"
        f"unitsOfWork = true\nlogTableName = {name}\n"
    )
    store = DynamoDBStore(dynamodb, name)
    store.create()
    return store, file


@asynccontextmanager
async def served_console(*files: Path, listen: str = "127.0.0.1:0") -> AsyncIterator[ServedConsole]:
    """Runs the console on settings files."""
    words = [word for file in files for word in ("-p", str(file))]
    output, console = await asyncio.to_thread(_started, *words, "--listen", listen)
    try:
        line = await asyncio.wait_for(asyncio.to_thread(output.readline), LIMIT)
        assert b"the console is at " in line, line
        yield ServedConsole(line.decode().split()[-1], console.pid)
    finally:
        await asyncio.to_thread(console.terminate)
        output.close()


@contextmanager
def health_page(answers: Mapping[str, Any]) -> Iterator[int]:
    """Serves a daemon's answers by their paths, such as that of ``/health``; gives the port."""

    class HealthHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = DoubleServer(HealthHandler)
    try:
        yield int(server.endpoint.rpartition(":")[2])
    finally:
        server.close()


def allow(file: Path, **settings: str) -> Path:
    """Adds settings to a file."""
    with file.open("a") as lines:
        lines.writelines(f"{name} = {value}\n" for name, value in settings.items())
    return file


def _started(*words: str) -> tuple[BinaryIO, ReadyCommand]:
    """Starts the console; returns its output and the process."""
    reading, writing = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        return os.fdopen(reading, "rb"), ready_kainite.start("console", *words, stdout=writing, stderr=nowhere)
    finally:
        os.close(writing)  # so that the console's end is the output's end
        os.close(nowhere)


def _asked(host: str, path: str, method: str, body: str, headers: Mapping[str, str]) -> PageAnswer:
    connection = http.client.HTTPConnection(host, timeout=LIMIT)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        if method == "POST":
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if method == "POST" else None)
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return PageAnswer(answer.status, told, answer.read().decode())
    finally:
        connection.close()

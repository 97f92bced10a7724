"""Too few open files are told as that, however deep in a library's error the system's own stands."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest
from botocore.exceptions import EndpointConnectionError

from kainite.base.errors import StreamUnavailableError
from kainite.base.open_files import advice_on, limit

NO_FILES = OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def raised(error: Exception, cause: Exception) -> Exception:
    """Returns an error as it is when it was raised from another one."""
    try:
        raise error from cause
    except Exception as found:
        return found


@pytest.mark.parametrize(
    "error",
    [
        NO_FILES,
        raised(StreamUnavailableError("x"), NO_FILES),
        raised(StreamUnavailableError("x"), raised(EndpointConnectionError(endpoint_url="u"), NO_FILES)),
        ConnectionError("gone", NO_FILES),
        ExceptionGroup("several", [ValueError("x"), raised(KeyError("y"), NO_FILES)]),
    ],
)
def test_it_is_found_among_the_causes(error: BaseException) -> None:
    advice = advice_on(error)
    assert advice is not None
    assert f"all of its {limit()} files" in advice
    assert "LimitNOFILE" in advice


def test_the_hosts_own_limit_is_told_as_that() -> None:
    assert "fs.file-max" in (advice_on(OSError(errno.ENFILE, "x")) or "")


def test_other_errors_have_no_such_advice() -> None:
    endless = ValueError("x")
    endless.__context__ = KeyError("y", endless)
    for error in (endless, OSError(errno.ECONNREFUSED, "x"), StreamUnavailableError("Too many open files")):
        assert advice_on(error) is None


def test_a_command_without_files_says_so_and_not_that_the_endpoint_is_not_reached() -> None:
    program = """
import logging, os, resource
from kainite.aws.clients import client
from kainite.aws.failures import classify
from kainite.base.logs import configure, event
from kainite.base.errors import LeaseTableUnavailableError
from kainite.cli.lazy_group import one_line
from kainite.leases.table.calls import TableCalls
from kainite.settings import AwsSettings
dynamodb = client("dynamodb", AwsSettings("us-east-1", dynamodb_endpoint="http://127.0.0.1:9"))
calls = TableCalls(dynamodb, "table")
try:
    calls.call("ListTables", dynamodb.list_tables)  # what is loaded when it is first needed is loaded now
except LeaseTableUnavailableError as error:
    assert "all of its" not in one_line(error)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
configure()
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
try:
    calls.call("ListTables", dynamodb.list_tables)
except LeaseTableUnavailableError as error:
    print(one_line(error))
    event(logging.getLogger("x"), logging.WARNING, "failed", error=error)
"""
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.startswith("this process has all of its 64 files and connections open (ulimit -n)")
    assert "advice=" in done.stderr
    assert "64 files" in done.stderr

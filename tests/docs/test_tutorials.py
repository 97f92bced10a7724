"""docs/tutorials: each page's commands are carried out as they stand there (``support/page_session.py``)."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from support.kinesis_local import kinesis_local
from support.page_session import commands_of, page_session

pytestmark = pytest.mark.timeout(600)

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PROGRAMS = Path(sysconfig.get_path("scripts"))
JAVA_KCL = Path(sys.prefix) / "peers/java-kcl"


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("page", ["own-source", "postgresql", "dsql", "kcl"])
def test_a_tutorial_does_what_it_shows(page: str) -> None:
    with page_session(PROGRAMS) as session:
        for commands in commands_of(TUTORIALS / f"{page}.md"):
            session.carry_out(commands)


@pytest.mark.long
@pytest.mark.xdist_group("java")
def test_an_application_goes_from_javas_daemon_to_kainite_and_back() -> None:
    with kinesis_local() as kinesis:  # moto does not speak HTTP/2, as Java's client wants it
        java = {
            "AWS_ENDPOINT_URL_KINESIS": kinesis,
            "AWS_CBOR_DISABLE": "true",
            "PYTHONPATH": str(JAVA_KCL),  # amazon_kclpy with its jars
            "JAVA_TOOL_OPTIONS": "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }
        with page_session(PROGRAMS, java) as session:
            for commands in commands_of(TUTORIALS / "kcl.md", java=True):
                session.carry_out(commands)


def test_every_tutorial_is_carried_out() -> None:
    assert {page.stem for page in TUTORIALS.glob("*.md")} - {"README"} == {"own-source", "postgresql", "dsql", "kcl"}

"""docs/tutorials: each page's commands are carried out as they stand there (``support/page_session.py``)."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from support.page_session import commands_of, page_session

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PROGRAMS = Path(sysconfig.get_path("scripts"))


@pytest.mark.parametrize("page", ["own-source"])
def test_a_tutorial_does_what_it_shows(page: str) -> None:
    with page_session(PROGRAMS) as session:
        for commands in commands_of(TUTORIALS / f"{page}.md"):
            session.carry_out(commands)

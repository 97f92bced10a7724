"""Types whose text depends on the server: money of other locales, and xml, which not every build has.

The server runs with locales that the test has made. It is Debian's or Ubuntu's package where one is installed, which
has xml; else the one of the other tests.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from end_to_end.test_types import run
from kainite.capture.postgresql.replication import SourceSlot
from kainite_demo import postgres_server as servers
from support.postgresql_source import source
from support.type_values import Kind, array_of, basic, optional

__all__ = ["source"]

EURO, YEN = "de_DE.UTF-8", "ja_JP.UTF-8"
"""1.234,56 € and ￥1,235: the one has a comma where the other has a point, and the other has no digits behind it."""

INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    """Gives a server that knows two locales beside C."""
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/ja_JP").exists():
        pytest.skip("no localedef, or no sources of locales: apt-get install locales")
    folder = Path(tempfile.mkdtemp(prefix="kainite-pg-"))
    folder.chmod(0o755)
    for locale in (EURO, YEN):
        name, charmap = locale.split(".")
        subprocess.run(["localedef", "-i", name, "-f", charmap, folder / locale], check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCPATH", str(folder))
        if INSTALLED:
            patch.setattr(servers, "programs", lambda: INSTALLED[-1].parent)
        with servers.postgres(folder / "pg", wal_level="logical") as url:
            yield url
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("monetary", [(EURO, YEN), (YEN, EURO)])
def test_money_of_other_locales_and_xml(source: SourceSlot, postgres: str, monetary: tuple[str, str]) -> None:
    money = next(kind for kind in basic() if kind.type == "money")
    kinds: list[Kind] = [money, *optional(postgres)]
    if INSTALLED:
        assert [kind.type for kind in kinds] == ["money", "xml"]
    run(source, postgres, [*kinds, *map(array_of, kinds)], seed=1, rounds=8, monetary=monetary)


def test_the_locales_of_this_test_write_money_differently(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        written = set()
        for locale in ("C", EURO, YEN):
            connection.execute("SELECT set_config('lc_monetary', %s, false)", [locale])
            written.add(connection.execute("SELECT '12'::money::text").fetchone())
    assert len(written) == 3

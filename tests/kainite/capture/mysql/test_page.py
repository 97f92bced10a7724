"""The section *MariaDB and MySQL* of docs/extract.md: its grants suffice, and its records are those that come."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import orjson

from kainite.capture.mysql.command import PROGRAM
from kainite.capture.mysql.taken_options import TakenOptions
from kainite.capture.truncate import OnTruncate
from support.mariadb_source import execute, here

PAGE = (Path(__file__).parents[4] / "docs/extract.md").read_text()
SECTION = PAGE.partition("## MariaDB and MySQL")[2].partition("## Guarantees")[0]


def test_the_pages_grants_suffice_and_its_records_come(database: str) -> None:
    name = database.split("/")[3].split("?")[0]
    grants = [line.partition(";")[0] for line in SECTION.splitlines() if line.startswith(("GRANT", "CREATE USER"))]
    execute(database, "CREATE TABLE orders (id int PRIMARY KEY, note text)", "DROP USER IF EXISTS kainite")
    execute(database, *(grant.replace("shop.", f"{name}.") for grant in grants))
    start = here(database)
    options = TakenOptions.begun((), OnTruncate.FAIL, 0).as_json()
    execute(database, "INSERT INTO orders VALUES (1, 'first')")
    done = subprocess.run(
        [str(Path(sysconfig.get_path("scripts"), PROGRAM)), "--source", database.replace("root@", "kainite@")],
        input=orjson.dumps({"start": {**start, "options": options}, "end": None}) + b"\n",
        env={**os.environ, "KAINITE_SOURCE_PASSWORD": "a password"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [orjson.loads(line) for line in re.findall(r'^\{"uow":"my-.*\}$', SECTION, re.MULTILINE)]
    for expected, found in zip(told, done.stdout.splitlines()[:2], strict=True):
        own = {"uow", "time"} & expected.keys()
        assert orjson.loads(found).keys() == expected.keys()
        assert {k: v for k, v in orjson.loads(found).items() if k not in own} == {
            k: v for k, v in expected.items() if k not in own
        }
    execute(database, "DROP USER kainite")

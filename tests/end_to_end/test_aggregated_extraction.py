"""What `kainite extract` packs together, the real Java daemon and Kainite take apart, also where shards are split."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.java_kcl import AS_2X, Application, terminate
from support.kinesis_local import client_of, kinesis_local

SCRIPT = "cd {folder}; seq -f 'a-%g' 500; until test -e split; do sleep 0.05; done; seq -f 'b-%g' 500; echo end"


@contextmanager
def extracting(app: Application, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `kainite extract` on a script; fails unless it succeeds."""
    path = app.folder / "extract.settings"
    keys = {
        "applicationName": app.name, "streamName": app.name, "regionName": "us-east-1",
        "kinesisEndpoint": app.kinesis_endpoint, "extractorName": f'sh -c "{script}"', "extractAggregation": "true",
        "extractAggregationMillis": "20",
    }  # fmt: skip
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    # Under the name of a daemon's log, which a failure shows.
    with (app.folder / "extract.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "kainite", "extract", "-p", str(path)], stderr=log)
    try:
        yield process
        assert process.wait(60) == 0
    finally:
        process.terminate()
        process.wait(60)


def split(app: Application) -> None:
    shard = app.kinesis.list_shards(StreamName=app.name)["Shards"][0]
    ends = [int(shard["HashKeyRange"][name]) for name in ("StartingHashKey", "EndingHashKey")]
    # Just above the hash key that the extractor goes on with: it is the middle of the shard as it was.
    middle = str(sum(ends) // 2 + 1)
    app.kinesis.split_shard(StreamName=app.name, ShardToSplit=shard["ShardId"], NewStartingHashKey=middle)


def expected(*names: str) -> set[str]:
    return {"end"} | {f"{name}-{number}" for name in names for number in range(1, 501)}


@pytest.mark.long
@pytest.mark.xdist_group("java")
@pytest.mark.timeout(300)
def test_java_and_kainite_take_the_extractors_aggregates_apart(
    moto_endpoint: str, dynamodb: Any, tmp_path: Path
) -> None:
    with kinesis_local() as endpoint:
        app = Application(client_of(endpoint), dynamodb, endpoint, moto_endpoint, tmp_path, 2, dict(AS_2X))
        with app.java("java") as java:
            with extracting(app, SCRIPT.format(folder=tmp_path)):
                app.eventually(lambda: len(app.payloads()) == 500, "the first half in Java")
                split(app)
                (tmp_path / "split").touch()
            app.eventually(lambda: app.payloads("java") == expected("a", "b"), "the second half in Java")
            terminate(java)
        sequences = Counter(record.sequence for record in app.delivered("java"))
        assert max(sequences.values()) > 50, "many records have one sequence number"
        with extracting(app, "seq -f 'c-%g' 500; echo end"):
            pass
        with app.kainite("kainite") as kainite:
            app.eventually(lambda: app.payloads("kainite") >= expected("c"), "the rest in Kainite")
            terminate(kainite)
        assert len(app.delivered("kainite")) == 501, "Kainite began at Java's checkpoints, which are behind aggregates"

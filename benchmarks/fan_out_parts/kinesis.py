"""Plays Kinesis over TLS, as the tests do: one shard that is full, and one in which records arrive one by one.

``kinesis.py FOLDER RECORDS BYTES ARRIVALS`` writes the authority of its certificate to FOLDER, prints its two
endpoints as a JSON list, and serves until its input ends. Each line of its input asks for arrivals that are polled.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # Kinesis is played as in the tests

from support.certificates import Authority
from support.fanout_double import FanOutDouble, Script, initial_response, message, shard_event
from support.kinesis_double import KinesisDouble

SHARD = "shardId-000000000000"
EVENT_RECORDS = 200
PACE_S = 0.1


def serve(folder: Path, records: int, size: int, arrivals: int) -> None:
    """Serves until the input ends."""
    certificate = Authority(folder, "authority").sign("kinesis")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate.certificate, certificate.key)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    full, paced = KinesisDouble(), KinesisDouble()
    data = "A" * (size // 3 * 4)
    events = [shard_event(*range(n, n + EVENT_RECORDS), data=data) for n in range(1, records + 1, EVENT_RECORDS)]
    for number in range(1, records + 1):
        full.put(b"", shard=SHARD)
        full.shards[SHARD].records[-1] |= {"SequenceNumber": str(number), "Data": data}
    doubles = [FanOutDouble(one, tls, only_http2=False) for one in (full, paced)]
    for _ in range(2):
        doubles[0].follow(Script((initial_response(), *events), "hold"))
        doubles[1].follow(Script(arriving(arrivals), "hold"))
    print(json.dumps([one.endpoint for one in doubles]), flush=True)
    for _ in sys.stdin:
        for _ in range(arrivals):
            time.sleep(PACE_S)
            paced.put(b"r", shard=SHARD)


def arriving(arrivals: int) -> Iterator[bytes]:
    """Yields an event with a record, one after the other."""
    yield initial_response()
    for number in range(1, arrivals + 1):
        time.sleep(PACE_S)
        record = {
            "Data": "cg==", "PartitionKey": "k", "SequenceNumber": str(number),
            "ApproximateArrivalTimestamp": time.time(),
        }  # fmt: skip
        body = {"Records": [record], "MillisBehindLatest": 0, "ContinuationSequenceNumber": str(number)}
        yield message({":message-type": "event", ":event-type": "SubscribeToShardEvent"}, body)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), *map(int, sys.argv[2:]))

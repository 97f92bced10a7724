"""An apply job that kills itself with SIGKILL at a named effect: ``mortal_apply.py ENDPOINT TABLE TARGET EFFECT``.

The log in DynamoDB, the target and the job are real. Spark's tasks run in this process, because Spark's start would
take longer than everything else.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kainite.aws import clients as aws
from kainite.settings import ApplySettings, AwsSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from kainite_spark.targets.opening import open_target
from support.chaos import Fate, MortalStore, MortalTarget
from support.inline_runner import InlineRunner


def main(endpoint: str, table: str, target_url: str, effect: str) -> None:
    fate = Fate(on=effect, die=lambda: os.kill(os.getpid(), signal.SIGKILL))
    client = aws.client("dynamodb", AwsSettings(region="us-east-1", dynamodb_endpoint=endpoint))
    store = MortalStore(DynamoDBStore(client, table), fate)
    target = MortalTarget(open_target(target_url, reflect(target_url)), fate)
    settings = ApplySettings(lease=60.0, idle=0.01, group_units=2)
    runner = InlineRunner(store, "0", target)
    ApplyJob(ApplyEnvironment(settings, store, "0", "a job", target, runner, "log/0"), threading.Event()).run(once=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

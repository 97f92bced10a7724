"""Creates a bucket, and a stream with three transactions of another database; LocalStack runs it when it is ready.

Kainite creates its own tables. Any Python with boto3 can run this script; ``AWS_ENDPOINT_URL`` is LocalStack's address.
"""

import os
from pathlib import Path

import boto3

STREAM = os.environ.get("STREAM_NAME", "changes")
CHANGES = os.environ.get("CHANGES", "/opt/kainite/changes.jsonl")
BUCKET = os.environ.get("AUDIT_BUCKET", "kainite-audit")
ENDPOINT = os.environ.get("AWS_ENDPOINT_URL", "http://localhost:4566")

session = boto3.Session("test", "test", region_name="us-east-1")
session.client("s3", endpoint_url=ENDPOINT).create_bucket(Bucket=BUCKET)
kinesis = session.client("kinesis", endpoint_url=ENDPOINT)
kinesis.create_stream(StreamName=STREAM, ShardCount=2)
kinesis.get_waiter("stream_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1, "MaxAttempts": 60})

lines = Path(CHANGES).read_bytes().splitlines()
# The records of a transaction may be on any shards: the hash of its line number chooses a record's shard.
kinesis.put_records(
    StreamName=STREAM, Records=[{"Data": line, "PartitionKey": str(number)} for number, line in enumerate(lines)]
)

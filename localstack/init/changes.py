"""LocalStack runs this when it is ready: it makes a bucket, and a stream with three transactions of another database.

Kainite makes its own tables. Any Python with boto3 runs it too; ``AWS_ENDPOINT_URL`` says where LocalStack is.
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
# Records of a transaction may be on any shards: each lies on the one that its number falls on.
kinesis.put_records(
    StreamName=STREAM, Records=[{"Data": line, "PartitionKey": str(number)} for number, line in enumerate(lines)]
)

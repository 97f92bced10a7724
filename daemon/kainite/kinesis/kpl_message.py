"""The KPL's AggregatedRecord, a proto2 message (``aggregation-format.md`` of amazon-kinesis-producer), and its frame.

::

    F3 89 9A C2 | AggregatedRecord | MD5 of the message, 16 bytes
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

MAGIC = b"\xf3\x89\x9a\xc2"
DIGEST_BYTES = 16


def digest(body: bytes) -> bytes:
    """Returns the digest of a message, which stands behind the message."""
    return hashlib.md5(body, usedforsecurity=False).digest()


@cache
def message_class() -> type[Any]:
    """Returns the message's class.

    Protobuf is imported with the first aggregate: most streams have none, and each daemon would pay for the import.
    Keys are declared as bytes, which look like strings on the wire, so that a key that is no UTF-8 costs no record.
    """
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message_factory import GetMessages

    file = FileDescriptorProto(name="kpl_aggregation.proto", package="kainite.kpl")
    file.message_type.add(
        name="Record",
        field=[
            Field(number=1, name="partition_key_index", type=Field.TYPE_UINT64, label=Field.LABEL_REQUIRED),
            Field(number=2, name="explicit_hash_key_index", type=Field.TYPE_UINT64, label=Field.LABEL_OPTIONAL),
            Field(number=3, name="data", type=Field.TYPE_BYTES, label=Field.LABEL_REQUIRED),
        ],
    )
    records = ".kainite.kpl.Record"
    file.message_type.add(
        name="AggregatedRecord",
        field=[
            Field(number=1, name="partition_key_table", type=Field.TYPE_BYTES, label=Field.LABEL_REPEATED),
            Field(number=2, name="explicit_hash_key_table", type=Field.TYPE_BYTES, label=Field.LABEL_REPEATED),
            Field(number=3, name="records", type=Field.TYPE_MESSAGE, label=Field.LABEL_REPEATED, type_name=records),
        ],
    )
    return GetMessages([file])["kainite.kpl.AggregatedRecord"]

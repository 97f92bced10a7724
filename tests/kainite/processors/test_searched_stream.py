"""The stream that a record processor searches."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import StreamError
from kainite.processors.pieces import PiecesMissingError, SplitImage
from kainite.processors.searched_stream import no_stream, search_on
from support.names import unique

IMAGE = SplitImage("c1", 2, 0, 0.0, 0.0)


def test_without_a_stream_the_error_names_the_option() -> None:
    with pytest.raises(PiecesMissingError, match="came in 2 pieces: name the stream with --stream"):
        no_stream(IMAGE)


def test_the_client_is_made_once_and_reads_the_stream(kinesis: Any, moto_endpoint: str) -> None:
    name = unique("searched")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    search = search_on(name, "us-east-1", moto_endpoint, 0.0)
    assert search() is search()
    assert isinstance(search().find(IMAGE)["c1"], PiecesMissingError)


def test_a_stream_that_is_not_there_is_an_error(moto_endpoint: str) -> None:
    with pytest.raises(StreamError, match="does not exist"):
        search_on("none", "us-east-1", moto_endpoint, 0.0)().find(IMAGE)

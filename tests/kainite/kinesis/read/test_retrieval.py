from __future__ import annotations

import sys

import pytest

from kainite.kinesis.read.retrieval import Way, chosen_way
from kainite.settings import Retrieval

AWS, DOUBLE = "https://kinesis.eu-north-1.amazonaws.com", "http://localhost:4566"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("mode", "endpoint", "way"),
    [
        (Retrieval.POLLING, AWS, Way.POLLING),
        (Retrieval.FANOUT, AWS, Way.HTTP2),
        (Retrieval.DEFAULT, AWS, Way.HTTP2),
        (Retrieval.POLLING, DOUBLE, Way.POLLING),
        (Retrieval.FANOUT, DOUBLE, Way.HTTP1),
        (Retrieval.DEFAULT, DOUBLE, Way.POLLING),
    ],
)
def test_default_is_fan_out_where_http2_can_be_spoken(mode: Retrieval, endpoint: str, way: Way) -> None:
    assert chosen_way(mode, endpoint).way is way


@pytest.mark.parametrize(("mode", "way"), [(Retrieval.FANOUT, Way.HTTP1), (Retrieval.DEFAULT, Way.POLLING)])
def test_without_the_extra_the_reason_names_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, mode: Retrieval, way: Way
) -> None:
    monkeypatch.setitem(sys.modules, "awscrt.http", None)
    chosen = chosen_way(mode, AWS)
    assert chosen.way is way
    assert "pip install 'kainite[fanout]'" in chosen.why


def test_a_proxy_on_the_way_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.example:3128")
    chosen = chosen_way(Retrieval.DEFAULT, AWS)
    assert (chosen.way, chosen.why) == (Way.POLLING, "the proxy proxy.example stands before it")
    monkeypatch.setenv("NO_PROXY", "amazonaws.com")
    assert chosen_way(Retrieval.DEFAULT, AWS).way is Way.HTTP2

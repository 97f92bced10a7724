"""What crosses the network in plain text, or to whoever stands in the way, is named; loopback and sockets are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.settings import load
from kainite.settings.exposure.network import on_the_network

PLAIN = "applicationName=app\nstreamName=s\nexecutableName=cat\n"


def found(folder: Path, properties: str, **environment: str) -> list[str]:
    path = folder / "app.properties"
    path.write_text(PLAIN + properties)
    return [str(exposure) for exposure in on_the_network(load(path), environment)]


@pytest.mark.parametrize("key", ["kinesisEndpoint", "dynamoDBEndpoint", "cloudWatchEndpoint", "s3Endpoint"])
def test_plain_endpoints_beyond_loopback(tmp_path: Path, key: str) -> None:
    (line,) = found(tmp_path, f"{key}=http://user:geheim@proxy.internal:4566/x\n")
    assert line.startswith(f"{key} http://proxy.internal: records and answers cross the network in plain text")
    assert "geheim" not in line
    for harmless in ("http://localhost:4566", "http://127.0.0.1:4566", "http://[::1]:4566", "https://proxy.internal"):
        assert not found(tmp_path, f"{key}={harmless}\n")


def test_a_plain_endpoint_of_sts(tmp_path: Path) -> None:
    chain = "StsAssumeRoleCredentialsProvider|arn:aws:iam::1:role/r|s|endpoint=http://sts.internal^eu-west-1"
    assert len(found(tmp_path, f"AwsCredentialsProvider={chain}\n")) == 1
    assert not found(tmp_path, f"AwsCredentialsProvider={chain.replace('http:', 'https:')}\n")


@pytest.mark.parametrize(
    ("target", "environment", "said"),
    [
        ("postgresql://u@db/d", {}, "sslmode=prefer"),
        ("postgresql://u@db/d?sslmode=require", {}, "sslmode=require"),
        ("postgresql://u@db/d?sslmode=disable", {"PGSSLMODE": "verify-full"}, "sslmode=disable"),
        ("postgresql://u@127.0.0.1,db:5433/d", {}, "target at db"),
        ("postgresql:///d?host=db", {}, "target at db"),
        ("postgresql:///d", {"PGHOST": "db"}, "target at db"),
        ("postgresql://u@db/d?sslmode=verify-full", {}, ""),
        ("postgresql://u@db/d?sslmode=verify-ca", {}, ""),
        ("postgresql://u@db/d", {"PGSSLMODE": "verify-full"}, ""),
        ("postgresql://u@127.0.0.1/d", {}, ""),
        ("postgresql://u@[::1]:5432/d", {}, ""),
        ("postgresql:///d", {}, ""),
        ("postgresql:///d?host=/var/run/postgresql", {}, ""),
        ("mariadb://u:p@db:3306/d", {}, "target at db"),
        ("mysql://u@db/d?ssl_cert=c", {}, "not verified"),
        ("mariadb://u@db/d?ssl_ca=/ca.pem", {}, ""),
        ("mariadb://u@127.0.0.1/d", {}, ""),
        ("mariadb://u@/d?unix_socket=/run/s", {}, ""),
        ("sqlite:///x", {}, ""),
        ("exec:load --to db", {}, ""),
    ],
)
def test_a_target_whose_certificate_nobody_checks(
    tmp_path: Path, target: str, environment: dict[str, str], said: str
) -> None:
    lines = found(tmp_path, f"target={target}\n", **environment)
    assert len(lines) == bool(said)
    assert said in "".join(lines)


def test_open_ports(tmp_path: Path) -> None:
    both = "metricsPort=9400\napplyMetricsPort=9401\n"
    assert len(found(tmp_path, f"{both}metricsHost=0.0.0.0\n")) == 2
    assert not found(tmp_path, both)
    assert not found(tmp_path, "metricsHost=0.0.0.0\n")

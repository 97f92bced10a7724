"""Every kind of file with a secret is named where others may read it, and none of them where nobody else may."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.redaction import forget
from kainite.settings import load
from kainite.settings.exposure.finding import Exposure
from kainite.settings.exposure.secret_files import in_the_process_list, readable_secrets

PLAIN = "applicationName=app\nstreamName=s\nexecutableName=cat\n"
STATIC = "AwsCredentialsProvider=StaticCredentialsProvider|AKIAEXAMPLE|geheimnis\n"
POSTGRESQL = "target=postgresql://u@h/d\n"


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    forget()


def found(folder: Path, properties: str, rights: int = 0o600, /, **environment: str) -> list[Exposure]:
    path = folder / "app.properties"
    path.write_text(PLAIN + properties)
    path.chmod(rights)
    return list(readable_secrets(load(path), {"HOME": str(folder), **environment}))


def put(path: Path, text: str = "x", rights: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(rights)
    return path


@pytest.mark.parametrize(
    "secret",
    [STATIC, "target=postgresql://u:geheim@h/d\n", "kinesisEndpoint=http://u:geheim@localhost\n", "dbPass=geheim\n"],
)
def test_a_settings_file_is_named_if_it_holds_a_secret(tmp_path: Path, secret: str) -> None:
    (exposure,) = found(tmp_path, secret, 0o644)
    assert exposure.where == str(tmp_path / "app.properties")
    assert exposure.remedy == f"chmod 600 {tmp_path / 'app.properties'}"
    assert "geheim" not in str(exposure)
    assert not found(tmp_path, secret, 0o600)
    assert not found(tmp_path, "regionName=eu-west-1\n", 0o644)


KINDS = [
    ("users", "logSecretFile=users\n", {}, "x"),
    ("key", "logKeyFile=key\nlogCertificateFile=crt\n", {}, "x"),
    (".pgpass", POSTGRESQL, {}, "x"),
    ("passwords", POSTGRESQL, {"PGPASSFILE": "{folder}/passwords"}, "x"),
    ("passwords", "target=postgresql://u@h/d?passfile={folder}/passwords\n", {}, "x"),
    ("db.key", "target=postgresql://u@h/d?sslkey={folder}/db.key\n", {}, "x"),
    (".postgresql/postgresql.key", POSTGRESQL, {}, "x"),
    (".aws/credentials", "", {}, "x"),
    ("aws", "", {"AWS_SHARED_CREDENTIALS_FILE": "{folder}/aws"}, "x"),
    (".aws/config", "", {}, "[default]\naws_secret_access_key = geheim\n"),
    ("duties.toml", "fleetDutiesFile=duties.toml\n", {}, '[load]\ncommand = "load --db-pass geheim"\n'),
]


@pytest.mark.parametrize(("name", "properties", "environment", "text"), KINDS)
@pytest.mark.parametrize("rights", [0o604, 0o640, 0o666])
def test_files_of_all_kinds_are_judged_alike(
    tmp_path: Path, name: str, properties: str, environment: dict[str, str], text: str, rights: int
) -> None:
    path = put(tmp_path / name, text, rights)
    named = {key: value.format(folder=tmp_path) for key, value in environment.items()}
    (exposure,) = found(tmp_path, properties.format(folder=tmp_path), 0o600, **named)
    assert exposure.where == str(path)
    assert exposure.remedy == f"chmod 600 {path}"
    path.chmod(0o600)
    assert not found(tmp_path, properties.format(folder=tmp_path), 0o600, **named)


def test_files_that_are_not_used_are_not_named(tmp_path: Path) -> None:
    put(tmp_path / ".aws" / "credentials")
    put(tmp_path / ".aws" / "config", "[default]\nregion = eu-west-1\n")
    put(tmp_path / ".pgpass")
    assert not found(tmp_path, "AwsCredentialsProvider=InstanceProfileCredentialsProvider\ntarget=sqlite:///x\n")
    (exposure,) = found(tmp_path, "AwsCredentialsProvider=ProfileCredentialsProvider|other\n")
    assert exposure.where.endswith("credentials")


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ("executableName=load --db-pass geheim\n", "executableName"),
        ("extractorName=extract postgresql://u:geheim@h/d\n", "extractorName"),
        ("target=exec:load --token=geheim\n", "target"),
        ("target=exec:load --verbose\nextractorName=extract postgresql://u@h/d\n", None),
    ],
)
def test_a_command_that_shows_a_secret_to_all_is_named(tmp_path: Path, properties: str, key: str | None) -> None:
    path = put(tmp_path / "app.properties", PLAIN + properties, 0o600)
    assert [exposure.where for exposure in in_the_process_list(load(path))] == ([key] if key else [])
    assert "geheim" not in "".join(map(str, in_the_process_list(load(path))))

"""No command shows a secret of its settings, and none sends a control character to the terminal."""

from __future__ import annotations

import ast
import json
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import kainite.cli
import kainite_spark.cli
from kainite.base.errors import KainiteError
from kainite.base.logs import JsonFormatter, KeyValueFormatter
from kainite.base.redaction import forget
from kainite.cli import terminal
from kainite.cli.lazy_group import one_line
from kainite.cli.main import main
from kainite.settings import examine
from kainite.store.memory import MemoryStore
from kainite_spark.configured_target import prepared_target

GOOD = f"applicationName=app\nstreamName=orders\nexecutableName={sys.executable} -m child\nregionName=eu-central-1\n"
PASSWORDS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x17F, exclude_categories=("Cc", "Cs", "Zs")), min_size=5, max_size=20
)
COMMANDS = (
    ("run", "--check"),
    ("run", "--check", "--json"),
    ("extract", "--check"),
    ("precedence",),
    ("--debug", "precedence"),
)


@pytest.fixture
def sound_file(tmp_path: Path) -> Path:
    path = tmp_path / "app.properties"
    path.write_text(GOOD)
    return path


def outputs(file: Path, environment: dict[str, str]) -> str:
    """Returns all that the commands print with these settings."""
    forget()
    shown = []
    for command in COMMANDS:
        result = CliRunner(env=environment).invoke(main, [*command, "-p", str(file)])
        assert result.exit_code in (0, 1), result.output
        shown.append(result.output)
    return "".join(shown)


def encodings(password: str) -> tuple[str, ...]:
    every = "".join(f"%{byte:02x}" for byte in password.encode())
    return password, quote(password, safe=""), every, password.replace("%", "%25")


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(PASSWORDS, st.integers(0, 3))
@example("p%zzword", 0)
@example("pa@ssword", 0)
@example("pa/ss@word", 0)
@example("pa?ssword", 0)
def test_no_command_shows_a_target_s_password(sound_file: Path, password: str, encoding: int) -> None:
    spelled = encodings(password)[encoding]
    before = outputs(sound_file, {"KAINITE_TARGET": "postgresql://user@127.0.0.1:1/db"})
    assume(password not in before)
    for target in (
        f"postgresql://user:{spelled}@127.0.0.1:1/db",
        f"postgresql:///db?host=127.0.0.1&port=1&password={spelled}",
        f"postgresql:/user:{spelled}@127.0.0.1:1/db",
        f"user:{spelled}@127.0.0.1:1/db",
        f"host=127.0.0.1 user=user password={spelled}",
    ):
        shown = outputs(sound_file, {"KAINITE_TARGET": target})
        assert password not in shown
        assert spelled not in shown


@pytest.mark.parametrize("secret", ["geheim%41@x", "gehe:im/x", "geheimnis"])
@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("KAINITE_KINESIS_ENDPOINT", "http://user:{}@localhost:4566"),
        ("KAINITE_DYNAMO_DB_ENDPOINT", "user:{}@localhost:4566"),
        ("KAINITE_S3_ENDPOINT", "http://user:{}@localhost:4566/?token={}"),
        ("KAINITE_TARGET", "exec:sh load --password {} --url https://u:{}@h"),
        ("KAINITE_TARGET", "exec:sh 'load --token={}"),
        ("KAINITE_EXECUTABLE_NAME", "sh run DB_PASSWORD={} -u me:{}"),
        ("KAINITE_EXTRACTOR_NAME", "sh -c 'PGPASSWORD={} x u:{}@h'"),
        ("KAINITE_AWS_CREDENTIALS_PROVIDER", "StaticCredentialsProvider|AKIA|{}"),
        ("KAINITE_AWS_CREDENTIALS_PROVIDER", "StaticCredentalsProvider|AKIA|{}"),
        ("KAINITE_TABLE_NAME", "postgresql://u:{}@h/d"),
    ],
)
def test_no_command_shows_a_secret_of_another_key(sound_file: Path, key: str, text: str, secret: str) -> None:
    shown = outputs(sound_file, {key: text.format(secret, secret)})
    assert secret not in shown
    assert "gehe" not in shown


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(PASSWORDS, st.integers(1, 2))
def test_the_apply_job_s_waiting_and_its_error_hide_the_password(
    caplog: pytest.LogCaptureFixture, sound_file: Path, password: str, encoding: int
) -> None:
    forget()
    assume(password not in "postgresql 127.0.0.1 connection failed user Connection refused waiting cause pause")
    caplog.clear()
    spelled = encodings(password)[encoding]
    target = f"postgresql://user:{spelled}@127.0.0.1:1/db"
    configured = examine(sound_file, options=(f"--target={target}",), environment={}).settings_or_raise()
    stop = threading.Event()
    stop.set()
    with pytest.raises(KainiteError) as raised, prepared_target(configured, MemoryStore(), stop):
        pass
    lines = [one_line(raised.value)]
    for formatter in (KeyValueFormatter(), JsonFormatter()):
        lines += map(formatter.format, caplog.records)
    assert not [line for line in lines if password in line or spelled in line]
    assert "user:" not in repr(configured)


def test_wrong_usage_repeats_no_password() -> None:
    result = CliRunner().invoke(main, ["precedence", "postgresql://u:geheim@h/d"])
    assert result.exit_code == 2
    assert "geheim" not in result.output


def test_what_is_printed_holds_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("head \x1b[31m")
    table.add_row(Text("cell \x1b]0;title\x07"))
    table.add_row("text \x9b2J \u202e")
    terminal.stdout().print(table)
    terminal.stdout().print(Text("line \x1b[2J\ud800"), soft_wrap=True)
    terminal.say("said \x1b[2J")
    terminal.say_json({"a": "\x1b\x9b\ud800"})
    shown = capsys.readouterr().out
    assert not {character for character in shown if ord(character) < 32 or 0x7F <= ord(character) < 0xA0} - {"\n"}
    assert json.loads(shown.strip().rpartition("\n")[2]) == {"a": "\x1b\x9b\ud800"}


ALLOWED = {"terminal.py", "lazy_group.py"}
"""``lazy_group`` prints one text, without importing rich."""


def test_no_command_writes_past_the_terminal_module() -> None:
    pages = [*Path(kainite.cli.__file__).parent.glob("*.py"), Path(kainite_spark.cli.__file__)]
    past = []
    for page in pages:
        for node in ast.walk(ast.parse(page.read_text())):
            if page.name not in ALLOWED and isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in {"click.echo", "click.secho", "print", "Console", "sys.stdout.write", "sys.stderr.write"}:
                    past.append(f"{page.name}:{node.lineno} {called}")
    assert not past

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.settings.loading.overrides import GivenText
from kainite.settings.loading.properties_file import read_properties


def read(tmp_path: Path, contents: bytes) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns the texts of a file by key, and its warnings."""
    path = tmp_path / "app.properties"
    path.write_bytes(contents)
    given, warnings = read_properties(path)
    return {key: value.text for key, value in given.items()}, warnings


@pytest.mark.parametrize(
    ("contents", "texts"),
    [
        (b"", {}),
        (b"# a comment\n! another\n\n", {}),
        (b"streamName=orders", {"streamName": "orders"}),
        (b"streamName: orders\napplicationName app\r\n", {"streamName": "orders", "applicationName": "app"}),
        (b"executableName = python \\\n    child.py\n", {"executableName": "python child.py"}),
        (b"streamName =   orders  \t\n", {"streamName": "orders"}),
        (b"streamName =\nregionName = \t \n", {}),
        (b"\xef\xbb\xbfstreamName=orders\n", {"streamName": "orders"}),
        (b"streamName=caf\xe9\n", {"streamName": "caf\u00e9"}),
        (b"streamName=caf\\u00e9\n", {"streamName": "caf\u00e9"}),
        (b"noSuchKey=x\n", {"noSuchKey": "x"}),
        (b"AWSCREDENTIALSPROVIDER=x\n", {"AwsCredentialsProvider": "x"}),
        (b"STREAMNAME=x\n", {"STREAMNAME": "x"}),
    ],
)
def test_a_file_is_read_by_javas_rules(tmp_path: Path, contents: bytes, texts: dict[str, str]) -> None:
    assert read(tmp_path, contents) == (texts, ())


@pytest.mark.parametrize(
    ("contents", "text"),
    [(b"markerEom = \\t \n", "\t"), (b"markerEom = \\n\n", "\n"), (b"streamName = \\tx\\t\n", "x")],
)
def test_white_space_other_than_spaces_belongs_to_a_marker(tmp_path: Path, contents: bytes, text: str) -> None:
    texts, _ = read(tmp_path, contents)
    assert list(texts.values()) == [text]


@pytest.mark.parametrize(
    ("contents", "warned"),
    [
        (b"streamName=a\nstreamName=b\n", ["streamName"]),
        (b"streamName=b\nstreamName=b\n", []),
        (b"streamName=a\nmaxRecords=1\nstreamName=c\nmaxRecords=2\nstreamName=b\n", ["streamName", "maxRecords"]),
    ],
)
def test_the_last_value_of_a_repeated_key_counts_and_another_one_is_warned_of(
    tmp_path: Path, contents: bytes, warned: list[str]
) -> None:
    texts, warnings = read(tmp_path, contents)
    assert texts["streamName"] == "b"
    assert [line.partition(":")[0] for line in warnings] == warned


def test_a_setting_carries_its_spelling_and_origin(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text("awsCredentialsProvider=x\n")
    assert read_properties(path)[0] == {"AwsCredentialsProvider": GivenText("x", "awsCredentialsProvider", "file")}


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (b"streamName=\\u12x\n", r"\\u12x"),
        ("streamName=orders\n".encode("utf-16"), "UTF-16: it holds NUL bytes"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, contents: bytes, problem: str) -> None:
    with pytest.raises(SettingsError, match=f"app.properties: .*{problem}"):
        read(tmp_path, contents)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.properties: No such file or directory"):
        read_properties(tmp_path / "none.properties")

"""A file of JSON lines is followed while another process writes it."""

from __future__ import annotations

from pathlib import Path

from kainite_demo.json_lines import JsonLinesFile


def test_lines_are_given_once_and_only_when_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    lines = JsonLinesFile(path)
    assert list(lines.read()) == []
    with path.open("ab", buffering=0) as file:
        file.write(b'{"a":1}\nnoise\n[2]\n{"b"')
        assert list(lines.read()) == [{"a": 1}]
        file.write(b':2}\n\n{"cut":\n{"c":3}\n')
        assert list(lines.read()) == [{"b": 2}, {"c": 3}]
        assert list(lines.read()) == []

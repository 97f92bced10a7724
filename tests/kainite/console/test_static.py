"""The files that come from elsewhere: what they are, and that a page asks nothing of another host."""

from __future__ import annotations

import re
from pathlib import Path

import kainite.console

STATIC = Path(kainite.console.__file__).parent / "static"


def test_the_versions_are_those_of_the_files() -> None:
    told = (STATIC / "README.md").read_text()
    (htmx,) = re.findall(r'version:"([0-9.]+)"', (STATIC / "htmx.min.js").read_text())
    (uplot,) = re.findall(r"\(v([0-9.]+)\)", (STATIC / "uplot.min.js").read_text())
    assert f"| {htmx} |" in told
    assert f"| {uplot} |" in told


def test_every_foreign_file_has_its_licence() -> None:
    own = {"console.css", "console.js", "icon.svg", "README.md"}
    foreign = {path.name.partition(".")[0] for path in STATIC.iterdir() if path.is_file() and path.name not in own}
    assert foreign == {path.stem for path in (STATIC / "licences").iterdir()} == {"htmx", "uplot"}


def test_no_file_names_another_host_to_load_from() -> None:
    for path in STATIC.rglob("*"):
        if path.suffix in (".css", ".js", ".svg"):
            text = path.read_text()
            addresses = set(re.findall(r"https?://[^\s\"')]+", text))
            assert addresses <= {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}, path
            assert "@import" not in text

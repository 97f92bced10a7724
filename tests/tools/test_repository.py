"""The repository's statements about itself: pins, links, make's verbs, example settings."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from kainite.settings import examine
from kainite.settings.keys.retired import RETIRED
from kainite.settings.keys.table import OWN_KEYS

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("record_processors/**/*.md"),
        ROOT / "tests" / "README.md",
    ]
)
EXAMPLES = sorted(ROOT.glob("properties/*.properties"))


def normal(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert name is not None
    return name[0].lower().replace("_", "-")


def fenced(page: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


def test_every_dependency_is_pinned_without_an_address() -> None:
    text = (ROOT / "constraints.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = chain(project["dependencies"], *project["optional-dependencies"].values())
    pinned = {normal(line) for line in text.splitlines() if "==" in line}

    assert {normal(name) for name in wanted} - {"kainite"} <= pinned
    assert "://" not in text


def test_the_same_versions_are_pinned_with_hashes_and_without() -> None:
    pinned = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    text = (ROOT / "hashes.txt").read_text()
    blocks = re.findall(r"^([a-z].*?) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.M)

    assert [version for version, _ in blocks] == pinned
    assert "://" not in text


def test_the_build_back_end_is_the_pinned_one() -> None:
    (required,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]

    assert required in (ROOT / "constraints.txt").read_text().splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_make_has_every_verb_that_is_spoken_of(page: Path) -> None:
    spoken = set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.M))

    assert spoken <= verbs()


def verbs() -> set[str]:
    listed = subprocess.run(["make", "-C", str(ROOT), "help"], capture_output=True, text=True, timeout=30, check=True)
    return set(re.findall(r"^  make ([a-z-]+)", listed.stdout, re.M))


def test_make_lists_every_verb() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    assert phony is not None

    assert verbs() == set(phony[1].split()) - {"preflight"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_settings_are_sound(path: Path) -> None:
    found = examine(path)

    assert (found.problems, found.unknown, found.ignored) == ((), (), ())


def test_each_key_of_our_own_stands_in_an_example() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in EXAMPLES)

    # A key that stands in the place of others is named in a comment: a file that has both is refused.
    named = set(re.findall(r"^#?(\w+) = ", text, re.M)) | set(re.findall(r'^# .*"(streamNames)"', text, re.M))
    assert not {key.name for key in OWN_KEYS} - named


def test_no_page_and_no_example_names_a_key_that_is_a_constant_now() -> None:
    pages = {*PAGES, *EXAMPLES} - {ROOT / "docs" / "properties.md"}
    named = {path.name: set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) & RETIRED.keys() for path in pages}

    assert not {name: keys for name, keys in named.items() if keys}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_settings_in_the_documents_are_known(page: Path, tmp_path: Path) -> None:
    for number, text in enumerate(fenced(page, "properties")):
        path = tmp_path / f"{number}.properties"
        path.write_text(text)
        found = examine(path)
        assert (found.wrong, found.unknown) == ((), ())


def test_the_page_about_tests_lists_every_support_module() -> None:
    listed = set(re.findall(r"`(\w+\.py)`", (ROOT / "tests" / "README.md").read_text(encoding="utf-8")))

    assert listed == {path.name for path in (ROOT / "tests" / "support").glob("*.py")}


def test_ci_runs_the_readmes_command() -> None:
    assert "make check test" in (ROOT / ".ci" / "run").read_text()
    assert "make test" in (ROOT / "README.md").read_text()

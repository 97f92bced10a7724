"""The examples in ``record_processors/examples``: one transform, in many languages and both dialects.

A wheel carries them as ``kainite/examples`` (pyproject.toml); a checkout has them in their own folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from kainite.settings import ChildProtocol

SAMPLES: Final = "samples.jsonl"
"""Records that every example understands, one a line."""

JSON_LINES, MARKERS = ChildProtocol.JSON_LINES, ChildProtocol.MARKERS


@dataclass(frozen=True, slots=True)
class Example:
    """One example: a language and a dialect.

    Attributes:
        language: the language's name on the command line, which is also the example's folder.
        dialect: the dialect that the example speaks.
        source: the example's file in its folder.
        run: the command line in that folder, for ``executableName``.
        note: names the library that the example is written with.
        prepare: commands that must run once in that folder before the first start.
        beside: other files of the example.
    """

    language: str
    dialect: ChildProtocol
    source: str
    run: str
    note: str
    prepare: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


_JQ: Final = ("apt-get install jq",)
_JAVA: Final = (
    "apt-get install openjdk-17-jdk-headless libjackson2-databind-java",
    "mkdir lib && ln -s /usr/share/java/jackson-*.jar lib",
)

EXAMPLES: Final = (
    Example(
        "python", JSON_LINES, "json_lines.py", "python3 json_lines.py", "Amazon's amazon_kclpy",
        ("KCL_MVN_REPO_SEARCH_URL=data:, pip install -r requirements.txt",), ("requirements.txt",),
    ),
    Example("python", MARKERS, "markers.py", "python3 markers.py", "no library; batches of any kind"),
    Example(
        "javascript", JSON_LINES, "json_lines.js", "node json_lines.js", "Amazon's aws-kcl",
        ("npm install",), ("package.json",),
    ),
    Example("javascript", MARKERS, "markers.js", "node markers.js", "no library"),
    Example("perl", JSON_LINES, "json_lines.pl", "perl json_lines.pl", "what comes with Perl"),
    Example("perl", MARKERS, "markers.pl", "perl markers.pl", "what comes with Perl"),
    Example("bash", JSON_LINES, "json_lines.sh", "bash json_lines.sh", "jq", _JQ),
    Example("bash", MARKERS, "markers.sh", "bash markers.sh", "jq", _JQ),
    Example(
        "java", JSON_LINES, "JsonLines.java", "java -cp .:lib/* JsonLines", "Jackson",
        (*_JAVA, 'javac -cp "lib/*" JsonLines.java'),
    ),
    Example(
        "java", MARKERS, "Markers.java", "java -cp .:lib/* Markers", "Jackson",
        (*_JAVA, 'javac -cp "lib/*" Markers.java'),
    ),
    Example("c", MARKERS, "markers.c", "./markers", "no library", ("cc -O2 -o markers markers.c",)),
)  # fmt: skip
"""All examples; a language's first one is taken where no dialect is given."""


def languages() -> tuple[str, ...]:
    """Returns the names of the languages, each once."""
    return tuple(dict.fromkeys(example.language for example in EXAMPLES))


def find(language: str, dialect: ChildProtocol | None) -> Example | None:
    """Returns a language's example in a dialect, by default in its first one; None where there is no such example."""
    return next(
        (one for one in EXAMPLES if one.language == language and dialect in (None, one.dialect)),
        None,
    )


def folder() -> Traversable:
    """Returns the folder of the examples: a folder for each language, and the samples."""
    shipped = files("kainite") / "examples"
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "record_processors" / "examples"

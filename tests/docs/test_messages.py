"""docs/messages.md names every event and every class of error that the source has, and none that it has not.

The source is read as syntax trees. The name of an event is what a call gives in the place of :data:`NAMES_AT`: a text,
a choice of texts, or a variable that holds one of these. A call whose name is none of these fails the test, unless it
passes on the name that its own caller gave.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("daemon", "spark_apply", "record_processors")
PAGE = ROOT / "docs" / "messages.md"

NAMES_AT: Mapping[str, int] = {
    "event": 2,
    "_tell_once": 0,
    "say": 0,
    "repeat": 1,
    "log": 1,
    "exception": 0,
    "Notice": 0,
}
"""Functions that log, and the place of the event's name among their arguments."""

LOGGERS = re.compile(r"(self\.)?(told|tasks|_tasks|logger|_logger|_LOG|running|_process|self)")
"""What these functions are called on; ``say`` and ``log`` are common names."""

PASSED_ON = frozenset({
    ("daemon/kainite/base/logs.py", "log"),  # event itself
    ("daemon/kainite/fleet/service.py", "what"),  # of a Notice
        ("daemon/kainite/owner/owner_tasks.py", "name"),  # of OwnerTasks.repeat
    ("spark_apply/kainite_spark/driver/jvm_output.py", "name"),  # that a Python worker has logged
})  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> list[tuple[str, ast.Module]]:
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def names_in(expression: ast.expr, function: Function | None) -> set[str] | None:
    """Returns the texts that an expression may be; None where that cannot be seen."""
    match expression:
        case ast.Constant(value=str() as text):
            return {text.replace("%s", "…")}
        case ast.IfExp(body=body, orelse=orelse):
            one, other = names_in(body, function), names_in(orelse, function)
            return one | other if one is not None and other is not None else None
        case ast.Name(id=name) if function is not None:
            values = [
                names_in(node.value, None)
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]
            ]
            known = [value for value in values if value is not None]
            return set().union(*known) if known and len(known) == len(values) else None
    return None


def is_passed_on(expression: ast.expr, function: Function | None) -> bool:
    """Returns whether a name is a parameter of a function that is itself among those that log: its callers are read."""
    if not isinstance(expression, ast.Name) or function is None:
        return False
    return function.name in NAMES_AT and expression.id in {argument.arg for argument in ast.walk(function.args) if
                                                           isinstance(argument, ast.arg)}  # fmt: skip


def logging_calls(tree: ast.Module) -> Iterator[tuple[ast.expr, Function | None]]:
    """Yields the expression of the name of each event, with the function around it."""
    within: dict[ast.AST, Function] = {}
    for node in ast.walk(tree):  # outer functions come before inner ones
        if isinstance(node, Function):
            within.update(dict.fromkeys(ast.walk(node), node))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) if name in NAMES_AT and name not in ("say", "log"):
                pass
            case ast.Attribute(attr=name, value=of) if name in NAMES_AT and LOGGERS.fullmatch(ast.unparse(of)):
                pass
            case _:
                continue
        place = NAMES_AT[name]
        if name == "log" and not ast.unparse(node.args[0]).startswith("logging."):
            continue
        yield node.args[place], within.get(node)


@cache
def events() -> Counter[str]:
    """Returns how often the source has each event."""
    found: Counter[str] = Counter()
    for path, tree in trees():
        for expression, function in logging_calls(tree):
            names = names_in(expression, function)
            if names is None:
                shown = ast.unparse(expression)
                assert is_passed_on(expression, function) or (path, shown) in PASSED_ON, (
                    f"{path}:{expression.lineno}: the event's name, {shown}, is not to be seen: give a text"
                )
            found.update(names or ())
    return found


def errors() -> set[str]:
    """Returns the public classes that are a KainiteError."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }

    def is_error(name: str) -> bool:
        return name == "KainiteError" or any(map(is_error, bases.get(name, ())))

    return {name for name in bases if is_error(name) and not name.startswith("_")}


def rows(heading: str) -> list[list[str]]:
    """Returns the cells of the page's tables whose first column has a heading."""
    found: list[list[str]] = []
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif cells[0] == heading:
            inside = True
        elif inside and not set(cells[0]) <= {"-"}:
            found.append(cells)
    return found


def named(heading: str) -> list[str]:
    return [name for cells in rows(heading) for name in re.findall(r"`([^`]+)`", cells[0])]


def test_the_page_has_every_event_once_and_no_other() -> None:
    page = Counter(named("event"))
    assert not [name for name, times in page.items() if times > 1]
    assert sorted(events().keys() - page.keys()) == [], "events that the page lacks"
    assert sorted(page.keys() - events().keys()) == [], "events that the source lacks"


def test_the_scan_finds_the_events_of_each_way_to_log() -> None:
    assert {
        "unit failed",  # event
        "poison batch",  # a choice of two
        "unit discarded",  # a choice in a variable
        "waiting for the log",  # ToldOnce.say
        "misfits not judged",  # OwnerTasks.repeat
        "child killed",  # PipedProcess.log
        "unknown message",  # Notice
        "page failed: …",  # Logger.exception
        "fleet not looked at, or not told",  # _tell_once
    } <= events().keys()


def test_the_page_has_every_public_error_once_and_no_other() -> None:
    page = named("error")
    assert sorted(page) == sorted(errors())


@pytest.mark.parametrize("heading", ["event", "error"])
def test_every_entry_says_what_it_means_and_what_to_do(heading: str) -> None:
    entries = rows(heading)
    assert entries
    assert not [cells for cells in entries if not all(cells[-2:]) and cells[0] != "`KainiteError`"]


def test_the_settings_that_the_page_names_exist() -> None:
    known = set(re.findall(r"`([a-zA-Z]+)`", (ROOT / "docs" / "properties.md").read_text(encoding="utf-8")))
    keys = set(re.findall(r"`([a-z]+[A-Z][A-Za-z]*)(?: = [^`]*|=[^`]*)?`", PAGE.read_text(encoding="utf-8")))
    assert len(keys) > 10
    assert keys <= known


def test_the_links_of_the_page_lead_somewhere() -> None:
    for file, anchor in re.findall(r"\]\(([a-z-]*(?:\.md)?)(?:#([a-z-]+))?\)", PAGE.read_text(encoding="utf-8")):
        text = (PAGE.parent / (file or PAGE.name)).read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
        assert not anchor or anchor in anchors, f"{file}#{anchor}"

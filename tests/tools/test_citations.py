"""Pages, docstrings and comments cite pages, sections, files and names: each of them exists.

Names of Kainite's own modules are looked up in the source (:mod:`support.program_names`). Each test goes over all
files that git knows, and lists what is wrong as ``file: citation``.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from support.program_names import SOURCE_ROOTS, ModuleNames, ProgramNames, read_names

ROOT = Path(__file__).parents[2]
NAMES = ProgramNames(ROOT)
BASES = (ROOT, *(ROOT / folder / package for package, folder in SOURCE_ROOTS.items()), ROOT / "tests")
"""The folders in which a path in the text may begin, beside the folder of the file that cites it."""

PAGE = re.compile(r"\bdocs/([\w-]+)\.md((?:(?:[\s,;:#]|and\b|or\b)*\*[^*\n]+\*)*)")
SECTION = re.compile(r"\*([^*]+)\*")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
SOURCE_FILE = re.compile(r"(?<![\w./-])(?!\S*/X/)(?:[\w-]+/)+[\w-]+\.py\b")
"""A path to a program; a folder X stands for any."""
DOTTED = re.compile(r"(?<![\w./-])(?:kainite|kainite_spark|kainite_demo)(?:\.[A-Za-z_]\w*)+(?![\w-]*/)")
ROLE = re.compile(r":(?:mod|class|func|meth|data|attr|exc|obj):`~?([^`]+)`")
METHOD = re.compile(r"`([A-Z]\w+)\.([a-z_]\w*)`")
BESIDE_MODULE = re.compile(r"`(kainite\w*(?:\.\w+)+)`((?:, `(?!kainite)[A-Za-z_][\w.]*`)+)")

NO_MODULES = re.compile(r"kainite\.(?:commands|service|yaml)$")
"""An entry point's group, a systemd unit, a template: dotted, and no names of Python."""

NOT_FOR_READERS = re.compile(
    r"\breference/\w+\.md|\bDESIGN\b|\bseeds? 00\d|\bwhite[ ]paper|\b[Tt]he paper's|\bshared/|/work/"
)
"""Notes that a reader of the repository does not have, and paths of a machine that it was written on."""


def tracked(*patterns: str) -> tuple[Path, ...]:
    """Returns the files that git knows and that are there."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return tuple(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


PAGES = tracked("*.md")
PROGRAMS = tracked("*.py")


def test_cited_pages_and_sections_exist() -> None:
    assert wrong([*PAGES, *PROGRAMS], missing_pages) == []


def test_links_to_sections_lead_to_one() -> None:
    assert wrong(PAGES, missing_anchors) == []


def test_named_source_files_exist() -> None:
    assert wrong([*PAGES, *PROGRAMS], missing_files) == []


def test_named_modules_and_symbols_exist() -> None:
    assert wrong([*PAGES, *PROGRAMS], unknown_names) == []


def test_docstrings_refer_to_names_that_exist() -> None:
    assert wrong(PROGRAMS, unknown_references) == []


def test_functions_on_pages_exist() -> None:
    # docs/kcl.md names KCL's classes too, which are no names of Kainite.
    pages = [page for page in PAGES if page.parent.name == "docs" and page.name != "kcl.md"]
    assert wrong(pages, unknown_functions) == []


def test_nothing_is_cited_that_a_reader_does_not_have() -> None:
    assert wrong([path for path in tracked() if path != Path(__file__)], unavailable) == []


def wrong(paths: Iterable[Path], finder: Callable[[Path], Iterable[str]]) -> list[str]:
    """Returns what ``finder`` finds in each file, behind the file's name."""
    return [f"{path.relative_to(ROOT)}: {found}" for path in paths for found in sorted(set(finder(path)))]


def missing_pages(path: Path) -> Iterator[str]:
    for name, cited in PAGE.findall(prose(path)):
        page = ROOT / "docs" / f"{name}.md"
        if not page.is_file():
            yield f"docs/{name}.md"
            continue
        wanted = [" ".join(section.split()).replace("`", "") for section in SECTION.findall(cited)]
        yield from (f"docs/{name}.md, *{section}*" for section in wanted if section not in sections(page))


def missing_anchors(page: Path) -> Iterator[str]:
    for link, anchor in LINK.findall(prose(page)):
        target = page.parent / link if link else page
        if not target.is_file() or anchor not in anchors(target):
            yield f"{link}#{anchor}"


def missing_files(path: Path) -> Iterator[str]:
    for name in SOURCE_FILE.findall(prose(path)):
        if not any((base / name).is_file() for base in (path.parent, *BASES)):
            yield name


def unknown_names(path: Path) -> Iterator[str]:
    for name in DOTTED.findall(prose(path)):
        if not NO_MODULES.match(name) and not NAMES.is_known(name):
            yield name


def unknown_references(path: Path) -> Iterator[str]:
    for name in ROLE.findall(prose(path)):
        if not is_reference(path, name):
            yield name


def is_reference(path: Path, name: str) -> bool:
    """Tells whether a docstring's reference is known, be it full, relative, or without its module."""
    if name.startswith("."):
        return NAMES.is_known(NAMES.package_of(path) + name)
    if name.partition(".")[0] in SOURCE_ROOTS:
        return NAMES.is_known(name)
    return NAMES.is_known_in(path, name) or (ROOT / "tests" / f"{name.replace('.', '/')}.py").is_file()


def unknown_functions(page: Path) -> Iterator[str]:
    """Yields what stands behind its module, and methods behind their class, where it is not defined."""
    for module, names in BESIDE_MODULE.findall(prose(page)):
        full = (f"{module}.{name}" for name in re.findall(r"[\w.]+", names))
        yield from (name for name in full if not NAMES.is_known(name))
    for owner, member in METHOD.findall(prose(page)):
        if not any(member in names.members.get(owner, ()) for names in product()):
            yield f"{owner}.{member}"


@functools.cache
def product() -> tuple[ModuleNames, ...]:
    """Returns the names of all modules below the source roots."""
    return tuple(map(read_names, tracked(*(f"{folder}/*.py" for folder in SOURCE_ROOTS.values()))))


def unavailable(path: Path) -> Iterator[str]:
    text = path.read_bytes().decode("utf-8", "replace")
    return (found[0] for found in NOT_FOR_READERS.finditer(text))


@functools.cache
def prose(path: Path) -> str:
    """Returns a page as it is; of a program its docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    return "\n\n".join(chain(docstrings(text), comments(text))) if path.suffix == ".py" else text


def docstrings(program: str) -> Iterator[str]:
    """Yields strings that stand by themselves: of modules, classes, functions and attributes."""
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def comments(program: str) -> Iterator[str]:
    """Yields comments; those on lines that follow each other come as one."""
    block: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield "\n".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    yield "\n".join(block)


@functools.cache
def sections(page: Path) -> frozenset[str]:
    """Returns a page's headings, and those that end in parentheses without them too."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = [heading.replace("`", "") for heading in HEADING.findall(text)]
    return frozenset([*headings, *(re.sub(r" \([^)]*\)$", "", heading) for heading in headings)])


def anchors(page: Path) -> frozenset[str]:
    """Returns a page's anchors as GitHub makes them out of headings."""
    return frozenset(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in sections(page))


DANGLING = [
    (missing_pages, "See docs/kcl.md, *Leases* and\n*Nothing*.", "docs/kcl.md, *Nothing*"),
    (missing_pages, "See docs/nothing.md.", "docs/nothing.md"),
    (missing_anchors, "[here](#nowhere)", "#nowhere"),
    (
        missing_files,
        "daemon/kainite/base/nothing.py and daemon/kainite/base/errors.py",
        "daemon/kainite/base/nothing.py",
    ),
    (unknown_names, "kainite.base.errors.KainiteError, kainite.base.nothing", "kainite.base.nothing"),
    (unknown_names, "kainite.base.errors.NothingError", "kainite.base.errors.NothingError"),
    (unknown_functions, "`kainite.base.errors`, `Nothing`", "kainite.base.errors.Nothing"),
    (unknown_functions, "`KainiteError.nothing`", "KainiteError.nothing"),
    (unavailable, "as reference" + "/notes.md has it", "reference" + "/notes.md"),
]


@pytest.mark.parametrize(("finder", "text", "found"), DANGLING)
def test_a_dangling_citation_is_found(
    finder: Callable[[Path], Iterable[str]], text: str, found: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)

    assert list(finder(page)) == [found]


@pytest.mark.parametrize("role", [":class:`Nothing`", ":mod:`.nothing`", ":meth:`ProgramNames.nothing`"])
def test_a_docstring_that_refers_to_nothing_is_found(role: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f'"""See {role}, not :class:`KainiteError`."""\nfrom kainite.base.errors import KainiteError\n')

    assert len(list(unknown_references(program))) == 1

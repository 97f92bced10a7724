"""The names that Kainite's packages define, read off their source: nothing is imported, so pyspark need not be there.

:class:`ProgramNames` knows every module below the source roots. A dotted name is *known* when it is a package or a
module, or continues with names that are defined there: top-level names, then members of a class.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCE_ROOTS = {
    "kainite": "daemon",
    "kainite_processors": "record_processors",
    "kainite_spark": "spark_apply",
    "kainite_demo": "demo",
}


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """The names that a module defines.

    Attributes:
        top: names at its top level, imported ones too.
        members: of each class that is defined there.
    """

    top: frozenset[str]
    members: Mapping[str, frozenset[str]]


class ProgramNames:
    """The names of Kainite's own packages.

    Args:
        root: the repository's folder.
    """

    def __init__(self, root: Path) -> None:
        self._paths = {
            _dotted(path.relative_to(root / folder)): path
            for package, folder in SOURCE_ROOTS.items()
            for path in (root / folder / package).rglob("*.py")
        }

    def is_known(self, dotted: str) -> bool:
        """Tells whether a full dotted name, such as ``kainite.base.errors.KainiteError``, is defined."""
        module, rest = self._split(dotted)
        if module is None:
            return False
        return not rest or self._holds(read_names(self._paths[module]), rest)

    def is_known_in(self, path: Path, name: str) -> bool:
        """Tells whether a name without its module is defined where ``path`` uses it: there, or by Python itself."""
        names = read_names(path)
        first, *rest = name.split(".")
        if first in names.members and rest:
            return rest[0] in names.members[first]
        return first in frozenset().union(names.top, dir(builtins), *names.members.values())

    def package_of(self, path: Path) -> str:
        """Returns the dotted name of the package that ``path`` lies in; empty outside the source roots."""
        found = next((dotted for dotted, known in self._paths.items() if known == path), "")
        return found if path.name == "__init__.py" else found.rpartition(".")[0]

    def _split(self, dotted: str) -> tuple[str | None, list[str]]:
        parts = dotted.split(".")
        for size in range(len(parts), 0, -1):
            if (module := ".".join(parts[:size])) in self._paths:
                return module, parts[size:]
        return None, parts

    def _holds(self, names: ModuleNames, rest: list[str]) -> bool:
        first, *members = rest
        if first not in names.top:
            return False
        # Members of what is imported, or is no class, are not followed.
        return not members or first not in names.members or members[0] in names.members[first]


@functools.cache
def read_names(path: Path) -> ModuleNames:
    """Reads what the module at ``path`` defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    members = {node.name: frozenset(_members(node)) for node in classes}
    return ModuleNames(frozenset(_defined(_flat(tree.body))) | members.keys(), members)


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields statements, and those inside ``if`` and ``try``."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _flat([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _flat([*node.body, *node.orelse, *node.finalbody])


def _defined(body: Iterator[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
            case ast.Assign(targets=targets):
                yield from (name for target in targets for name in _targets(target))
            case ast.AnnAssign(target=target):
                yield from _targets(target)


def _members(node: ast.ClassDef) -> Iterator[str]:
    yield from _defined(iter(node.body))
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                yield name


def _targets(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from _targets(element)

"""Each module with logic has the test file that mirrors it.

That is ``tests/kainite/X/test_y.py`` for ``daemon/kainite/X/y.py``. A module has *logic* when it defines a function or
a method that does something. What is left needs no test file: constants, re-exports, type aliases, enums, dataclasses
without methods, errors without code, and Protocols. A method whose body is a docstring, ``...`` or ``pass`` does
nothing, and a property that returns one attribute decides nothing.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.program_names import SOURCE_ROOTS

ROOT = Path(__file__).parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_each_module_with_logic_has_its_test_file() -> None:
    missing = [
        path for path in modules() if has_logic((ROOT / path).read_text(encoding="utf-8")) and not is_tested(path)
    ]

    assert [str(path) for path in missing] == []


@pytest.mark.parametrize(
    "program",
    [
        "def double(x):\n    return 2 * x",
        "async def wait():\n    await other()",
        "class Sum:\n    def add(self, x):\n        self.total += x",
        "class Span:\n    @property\n    def size(self):\n        return self.last - self.first",
        "class ReadError(KainiteError):\n    def __init__(self, path):\n        super().__init__(f'{path}?')",
        "if True:\n    def late():\n        return later()",
    ],
)
def test_what_a_module_does_is_logic(program: str) -> None:
    assert has_logic(program)


@pytest.mark.parametrize(
    "program",
    [
        "from other import name\nLIMIT = 3",
        "class Span:\n    first: int\n    last: int",
        "class Turn(Enum):\n    OURS = auto()",
        "class ReadError(KainiteError):\n    '''The file cannot be read.'''",
        "class Store(Protocol):\n    def get(self):\n        '''Returns the item.'''\n        return None",
        "class Store(Protocol[T]):\n    def get(self):\n        return None",
        "class Nothing:\n    def close(self):\n        '''Does nothing.'''\n    def flush(self): ...",
        "class Cycle:\n    @property\n    def stage(self):\n        return self._stage",
    ],
)
def test_declarations_are_no_logic(program: str) -> None:
    assert not has_logic(program)


def modules() -> Iterator[Path]:
    """Yields the modules that git knows, relative to the repository."""
    patterns = [f"{folder}/{package}/*.py" for package, folder in SOURCE_ROOTS.items()]
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return (Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file())


def mirrored(path: Path) -> Path:
    """Returns a module's path within its source root."""
    return path.relative_to(*[root for root in SOURCE_ROOTS.values() if path.is_relative_to(root)])


def is_tested(path: Path) -> bool:
    inner = mirrored(path)
    package = inner.stem == "__init__"
    return (ROOT / "tests" / inner.parent / f"test_{inner.parent.name if package else inner.stem}.py").is_file()


def has_logic(program: str) -> bool:
    return any(map(decides, functions(ast.parse(program))))


def functions(node: ast.AST) -> Iterator[Function]:
    """Yields the functions and methods below ``node``, without those of Protocols."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function):
            yield inner
        elif not isinstance(inner, ast.ClassDef) or not is_protocol(inner):
            yield from functions(inner)


def is_protocol(node: ast.ClassDef) -> bool:
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)


def decides(function: Function) -> bool:
    """Tells whether a function's body does more than nothing, or than returning an attribute."""
    match [statement for statement in function.body if not is_idle(statement)]:
        case []:
            return False
        case [ast.Return(value=ast.Attribute(value=ast.Name(id="self")))]:
            return False
    return True


def is_idle(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
    return False

"""Imports botocore without what writes the docstrings of its clients' methods: a tenth of the time that it takes.

``kainite status`` and other commands of a person who looks spend most of their time on imports. botocore makes each
method's docstring when somebody reads it, by a package of 15 modules that it imports for that. While botocore is being
imported here, another module stands in that package's place, of which the docstrings are empty. Later imports of the
package find the package itself.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "botocore.docs"
_MODULE: Final = f"{_PACKAGE}.docstring"


class EmptyDocstring(str):
    """A docstring without text, whatever it is made of."""

    __slots__ = ()

    def __new__(cls, *_: object, **__: object) -> EmptyDocstring:
        return super().__new__(cls)


class EmptyDocstrings(ModuleType):
    """A module in which each name is a kind of docstring, so that no release of botocore misses one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return EmptyDocstring


def import_botocore() -> None:
    """Imports botocore's sessions and clients, unless somebody has."""
    if "botocore.client" in sys.modules or _PACKAGE in sys.modules:
        return
    found = find_spec("botocore")
    package = ModuleType(_PACKAGE)
    package.__path__ = [str(Path(folder) / "docs") for folder in (found and found.submodule_search_locations) or ()]
    stand_ins = {_PACKAGE: package, _MODULE: EmptyDocstrings(_MODULE)}
    sys.modules.update(stand_ins)
    try:
        import botocore.client
        import botocore.session  # noqa: F401
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)

"""The placeholders of a run instruction, such as ``{eom}``: checks and fills templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

PLACEHOLDERS: Final = ("eom", "eop", "eob", "bnc", "batching", "batch_size")

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


def check_template(text: str) -> None:
    """Checks the placeholders of a template.

    Raises:
        ValueError: the template has an unknown placeholder.
    """
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            raise ValueError(f"{{{name}}} is none of {', '.join(f'{{{known}}}' for known in PLACEHOLDERS)}")


def filled(template: str, values: Mapping[str, str]) -> str:
    """Returns a checked template with the values in place of its placeholders."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)

"""Placeholders in a run instruction, such as ``{eom}``: which there are, and how a template is filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

PLACEHOLDERS: Final = ("eom", "eop", "eob", "bnc", "batching", "batch_size")

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


def check_template(text: str) -> None:
    """Raise ``ValueError`` for a placeholder that there is not."""
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            raise ValueError(f"{{{name}}} is none of {', '.join(f'{{{known}}}' for known in PLACEHOLDERS)}")


def filled(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)

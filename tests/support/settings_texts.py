"""Settings as they are written, by key."""

from __future__ import annotations

from kainite.settings.loading.overrides import Given


def given(**texts: str) -> dict[str, Given]:
    """Returns the settings of a file with these texts."""
    return {key: Given(text, key, "file") for key, text in texts.items()}

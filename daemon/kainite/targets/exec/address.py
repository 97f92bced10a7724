"""How a loader is written: ``exec:COMMAND``, a command line as a shell splits it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kainite.base.redaction import secrets_in_words, shown_command
from kainite.settings.kinds.target_kinds import TargetAddress
from kainite.settings.loader_command import EXEC, command_words


def _parse(text: str, folder: Path) -> str:
    command_words(text.removeprefix(EXEC))
    return text


def _show(target: str) -> str:
    return EXEC + shown_command(command_words(target.removeprefix(EXEC)))


def _secrets(text: str) -> Iterable[str]:
    line = text.removeprefix(EXEC)
    try:
        return secrets_in_words(command_words(line))
    except ValueError:
        return secrets_in_words(line.split())


ADDRESS = TargetAddress(_parse, _show, _secrets)

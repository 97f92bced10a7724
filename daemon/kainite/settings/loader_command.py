"""The command of ``target=exec:COMMAND``: a program of the user's that loads units of work."""

from __future__ import annotations

import shlex

EXEC = "exec:"


def loader_command(target: str) -> tuple[str, ...] | None:
    """Returns the words of a loader's command line; None for a target that is a database.

    Raises:
        ValueError: the command line cannot be split into words, or names no program.
    """
    return command_words(target.removeprefix(EXEC)) if target.startswith(EXEC) else None


def command_words(line: str) -> tuple[str, ...]:
    """Returns a command line's words, split as a shell splits them.

    Raises:
        ValueError: the command line cannot be split into words, or names no program.
    """
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        # The line is not repeated: it may hold passwords.
        raise ValueError(f"the command line cannot be split into words: {error}") from None
    if not words:
        raise ValueError("the command line names no program")
    return words

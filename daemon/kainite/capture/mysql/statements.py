"""Tells what a statement means that the binlog has as a text; pure.

With ``binlog_format = ROW`` these are the ends of transactions, savepoints, DDL and ``TRUNCATE``. A session that has
chosen another format has its changes of rows logged as texts, too: no rows can be read out of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kainite.capture.mysql.events import Query

_COMMENT: Final = re.compile(r"\s*(?:/\*(?!M?!).*?\*/|--\s[^\n]*\n|#[^\n]*\n)\s*", re.DOTALL)
_NAME: Final = r"(`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|[\w$]+)"
_TRUNCATE: Final = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?{_NAME}(?:\s*\.\s*{_NAME})?", re.IGNORECASE)
_SAVEPOINT: Final = re.compile(r"(SAVEPOINT|ROLLBACK\s+TO)\s+(?:SAVEPOINT\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_XA: Final = re.compile(r"XA\s+(START|BEGIN|END|COMMIT|ROLLBACK)\s+(.+)", re.IGNORECASE | re.DOTALL)
_CREATES_WITH_ROWS: Final = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\b(?=.*\bSELECT\b)", re.IGNORECASE | re.DOTALL
)
_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "SELECT", "DO", "CALL"})
_ENDS: Final = {"BEGIN": "begin", "COMMIT": "commit", "ROLLBACK": "rollback"}


class Means(StrEnum):
    """What a statement means."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to"
    XA_START = "xa start"
    XA_END = "xa end"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"
    TRUNCATE = "truncate"
    CHANGE = "change"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement.

    Attributes:
        name: the savepoint's, the XA transaction's, the table's, or the statement's first word.
        database: the one that the statement means.
        text: the whole of it.
    """

    means: Means
    name: str
    database: str
    text: str

    def is_about(self, database: str) -> bool:
        """Returns whether a change of rows may be one of a database: it is the session's, or stands in the text."""
        return self.database == database or database in self.text


def statement_of(query: Query) -> LoggedStatement:
    """Returns what a statement means."""
    text = query.text
    while found := _COMMENT.match(text):
        text = text[found.end() :]
    text = text.strip()
    if (word := text.upper().rstrip(";")) in _ENDS:
        return LoggedStatement(Means(_ENDS[word]), "", query.database, text)
    if found := _XA.match(text):
        word = "start" if found[1].upper() == "BEGIN" else found[1].lower()
        return LoggedStatement(Means(f"xa {word}"), found[2], query.database, text)
    if found := _SAVEPOINT.match(text):
        means = Means.SAVEPOINT if found[1].upper() == "SAVEPOINT" else Means.ROLLBACK_TO
        return LoggedStatement(means, found[2].casefold(), query.database, text)
    if found := _TRUNCATE.match(text):
        database, name = (query.database, found[1]) if found[2] is None else (_plain(found[1]), found[2])
        return LoggedStatement(Means.TRUNCATE, _plain(name), database, text)
    first = text.partition(" ")[0].upper()
    changes = first in _CHANGES or _CREATES_WITH_ROWS.match(text)
    return LoggedStatement(Means.CHANGE if changes else Means.OTHER, first[:20], query.database, text)


def _plain(name: str) -> str:
    mark = name[0]
    return name[1:-1].replace(mark * 2, mark) if mark in '`"' else name

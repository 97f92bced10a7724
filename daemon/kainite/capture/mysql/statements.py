"""Tells what a statement means that the binlog has as a text; pure.

With ``binlog_format = ROW`` these are the ends of transactions, savepoints, DDL and ``TRUNCATE``. A session that has
chosen another format has its changes of rows logged as texts, too: no rows can be read out of these. A statement counts
as such a change unless its first word says that it is none: one that is not known must not be lost in silence.

Some DDL takes rows from a table, or brings it others, without naming one: a table that is dropped may come back empty,
and behind ``RENAME`` a name means other rows (:mod:`~kainite.capture.mysql.replaced_tables`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from kainite.capture.mysql.events import Query
from kainite.capture.mysql.replaced_tables import NAME, plain_name, replaced_tables, without_comments

_TRUNCATE: Final = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?{NAME}(?:\s*\.\s*{NAME})?", re.IGNORECASE)
_SAVEPOINT: Final = re.compile(r"(SAVEPOINT|ROLLBACK\s+TO)\s+(?:SAVEPOINT\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_XA: Final = re.compile(r"XA\s+(START|BEGIN|END|COMMIT|ROLLBACK)\s+(.+)", re.IGNORECASE | re.DOTALL)
_CREATES_WITH_ROWS: Final = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\b(?=.*\bSELECT\b)", re.IGNORECASE | re.DOTALL
)
_BEFORE: Final = re.compile(r"SET\s+STATEMENT\s.+?\sFOR\s+", re.IGNORECASE | re.DOTALL)
"""What MariaDB logs before a statement: variables for the statement alone."""
_FIRST_WORD: Final = re.compile(r"\W*(\w*)")
_ANALYZES_TABLE: Final = re.compile(r"ANALYZE\s+(?:\w+\s+)?TABLES?\b", re.IGNORECASE)
_NO_CHANGES: Final = frozenset({
    "", "ALTER", "BACKUP", "CACHE", "CHANGE", "CHECK", "CREATE", "DROP", "FLUSH", "GRANT", "INSTALL", "KILL", "LOCK",
    "OPTIMIZE", "PURGE", "RELEASE", "RENAME", "REPAIR", "RESET", "REVOKE", "SET", "SHUTDOWN", "START", "STOP",
    "UNINSTALL", "UNLOCK", "USE",
})  # fmt: skip
"""First words of statements that change no rows."""
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
    REPLACE = "replace"
    CHANGE = "change"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement.

    Attributes:
        name: the savepoint's, the XA transaction's, the table's, or the statement's first words.
        database: the one that the statement means.
        text: the whole of it, without comments.
        tables: whose rows are replaced: databases and names; an empty name stands for all tables of a database.
    """

    means: Means
    name: str
    database: str
    text: str
    tables: tuple[tuple[str, str], ...] = ()

    def tables_of(self, database: str) -> list[str]:
        """Returns the tables of a database whose rows are replaced."""
        return [table for of, table in self.tables if of == database]

    def in_lower_case(self) -> Self:
        """Returns the statement as a server has its names that keeps them in lower case."""
        name = self.name.lower() if self.means is Means.TRUNCATE else self.name
        tables = tuple((database.lower(), table.lower()) for database, table in self.tables)
        return replace(self, name=name, database=self.database.lower(), text=self.text.lower(), tables=tables)

    def is_about(self, database: str) -> bool:
        """Returns whether a change of rows may be one of a database: it is the session's, or stands in the text."""
        return self.database == database or database in self.text


def statement_of(query: Query) -> LoggedStatement:
    """Returns what a statement means."""
    text = without_comments(query.text)
    while found := _BEFORE.match(text):
        text = text[found.end() :]
    if (word := text.upper().rstrip(";")) in _ENDS:
        return LoggedStatement(Means(_ENDS[word]), "", query.database, text)
    if found := _XA.match(text):
        word = "start" if found[1].upper() == "BEGIN" else found[1].lower()
        return LoggedStatement(Means(f"xa {word}"), found[2], query.database, text)
    if found := _SAVEPOINT.match(text):
        means = Means.SAVEPOINT if found[1].upper() == "SAVEPOINT" else Means.ROLLBACK_TO
        return LoggedStatement(means, found[2].casefold(), query.database, text)
    if found := _TRUNCATE.match(text):
        database, name = (query.database, found[1]) if found[2] is None else (plain_name(found[1]), found[2])
        return LoggedStatement(Means.TRUNCATE, plain_name(name), database, text)
    if replaced := replaced_tables(text, query.database):
        return LoggedStatement(Means.REPLACE, replaced.words, query.database, text, replaced.tables)
    found = _FIRST_WORD.match(text)
    first = found[1].upper() if found else ""
    changes = not (first in _NO_CHANGES or _ANALYZES_TABLE.match(text)) or _CREATES_WITH_ROWS.match(text)
    return LoggedStatement(Means.CHANGE if changes else Means.OTHER, first[:20], query.database, text)

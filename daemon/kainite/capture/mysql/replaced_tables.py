"""Finds the tables whose rows a DDL statement replaces without naming one; pure.

Nothing else in the binlog tells of these rows, so the statement fails its unit: whoever reads that copies the table
again, or drops it in the target, too.

===========================================  ==========================================================================
statement                                    whose rows are others behind it
===========================================  ==========================================================================
``DROP TABLE``, ``DROP DATABASE``,           a table of that name may come back, and begins without rows
``CREATE OR REPLACE DATABASE``
``CREATE OR REPLACE TABLE``                  the table's: it had some
``RENAME TABLE``, ``ALTER TABLE … RENAME``   both names': a table is given another one's place, as by tools that alter
                                             tables in a copy
``… DROP``, ``TRUNCATE PARTITION``           the table's
``… EXCHANGE``, ``CONVERT PARTITION``,       the table's, and those of the table that is its partition, or becomes one
``CONVERT TABLE … TO PARTITION``
``… DISCARD``, ``IMPORT TABLESPACE``         the table's
``ALTER IGNORE TABLE``                       the table's: rows that a new unique key does not take go, and values that a
                                             column does not take become others
===========================================  ==========================================================================

Temporary tables are none of these. The server writes ``DROP TABLE`` itself, all others as they were sent, so there may
be comments between any two words; what stands in an executable comment counts. A text that only looks like one (a
column's comment says ``DROP PARTITION``) fails a unit for nothing, which is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

NAME: Final = r"(`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|[\w$]+)"
"""A name as it is written, as one group."""

_NAMED: Final = re.compile(rf"{NAME}(?:\s*\.\s*{NAME})?")
_QUOTED: Final = {"'": r"'(?:[^'\\]|\\.)*'", '"': r'"(?:[^"\\]|\\.)*"', "`": "`[^`]*`"}
_NO_CODE: Final = r"/\*M?!\d*|/\*.*?(?:\*/|\Z)|\*/|(?:--(?=\s)|\#)[^\n]*"
"""Comments, and the marks around what is executed."""
_ALL_THAT_ARE_NAMED: Final = (
    re.compile(r"(DROP\s+TABLE)S?\s+(?:IF\s+EXISTS\s+)?(.+)", re.IGNORECASE | re.DOTALL),
    re.compile(r"(RENAME\s+TABLE)S?\s+(?:IF\s+EXISTS\s+)?(.+)", re.IGNORECASE | re.DOTALL),
    re.compile(rf"(CREATE\s+OR\s+REPLACE\s+TABLE)\s+({_NAMED.pattern})", re.IGNORECASE),
)
_DROPS_DATABASE: Final = re.compile(
    rf"((?:DROP|CREATE\s+OR\s+REPLACE)\s+(?:DATABASE|SCHEMA))\s+(?:IF\s+EXISTS\s+)?{NAME}", re.IGNORECASE
)
_ALTERS: Final = re.compile(
    rf"ALTER\s+(?P<first>(?:ONLINE\s+|IGNORE\s+)*)TABLE\s+(?:IF\s+EXISTS\s+)?(?P<own>{_NAMED.pattern})(?P<how>.*)",
    re.IGNORECASE | re.DOTALL,
)
_HOW: Final = re.compile(
    r"\b((?:DROP|TRUNCATE|EXCHANGE|CONVERT)\s+PARTITION|CONVERT\s+TABLE|(?P<file>DISCARD|IMPORT)"
    r"|RENAME(?!\s+(?:COLUMN|INDEX|KEY)\b))\b",
    re.IGNORECASE,
)
"""What an ALTER TABLE says that replaces rows; of a *file* only before the word TABLESPACE."""
_TABLESPACE: Final = re.compile(r"\bTABLESPACE\b", re.IGNORECASE)
_OTHER: Final = re.compile(rf"\b(?:RENAME\b(?:\s+(?:TO|AS)\b|\s*=)?|TABLE\b)\s*{_NAMED.pattern}", re.IGNORECASE)
"""Another table that an ALTER TABLE names."""
_NO_NAMES: Final = frozenset({"TO", "WAIT", "NOWAIT", "RESTRICT", "CASCADE"})


class ReplacedTables(NamedTuple):
    """What a statement replaces.

    Attributes:
        words: the statement's words that do it.
        tables: databases and tables; an empty name stands for all tables of a database.
    """

    words: str
    tables: tuple[tuple[str, str], ...]


def without_comments(text: str) -> str:
    """Returns a statement without its comments; with what the server executes of them."""
    return "".join(_pieces(text)).strip()


def _pieces(text: str) -> Iterator[str]:
    """Yields a statement piece by piece, each comment as a space.

    A quote that nothing ends stays as it is. Nothing ends later ones of its kind either: they were passed over behind a
    backslash, and what follows them is read alike. So none of them is looked for any more, which would read the rest of
    the text for each.
    """
    quotes, begin = "".join(_QUOTED), 0
    while found := _next(quotes).search(text, begin):
        yield text[begin : found.start()]
        stays = found["stays"] or " "
        yield stays
        quotes = quotes.replace(stays, "")  # what is in quotes has two characters at least
        begin = found.end()
    yield text[begin:]


@cache
def _next(quotes: str) -> re.Pattern[str]:
    """Returns what finds texts and names in certain quotes, which stay, a quote that nothing ends, and comments."""
    stays = [*(_QUOTED[quote] for quote in quotes), *quotes] or ["(?!)"]
    return re.compile(rf"(?P<stays>{'|'.join(stays)})|{_NO_CODE}", re.DOTALL)


def replaced_tables(text: str, database: str) -> ReplacedTables | None:
    """Returns the tables whose rows a statement replaces; None for a statement of another kind.

    Args:
        text: the statement, without comments.
        database: that of the names that have none.
    """
    if found := _DROPS_DATABASE.match(text):
        return ReplacedTables(_words(found[1]), ((plain_name(found[2]), ""),))
    for pattern in _ALL_THAT_ARE_NAMED:
        if found := pattern.match(text):
            return ReplacedTables(_words(found[1]), tuple(_named(_NAMED.finditer(found[2]), database)))
    if (found := _ALTERS.match(text)) is None:
        return None
    if how := _how(found["how"]):
        named = chain(_NAMED.finditer(found["own"]), _OTHER.finditer(found["how"]))
        return ReplacedTables(f"ALTER TABLE {_words(how)}", tuple(_named(named, database)))
    if "IGNORE" in _words(found["first"]):
        return ReplacedTables("ALTER IGNORE TABLE", tuple(_named(_NAMED.finditer(found["own"]), database)))
    return None


def _how(text: str) -> str | None:
    """Returns the words of an ALTER TABLE that replace rows; None where there are none."""
    tablespace = max((found.start() for found in _TABLESPACE.finditer(text)), default=-1)
    return next((how[1] for how in _HOW.finditer(text) if how["file"] is None or how.start() < tablespace), None)


def plain_name(name: str) -> str:
    """Returns a name without its quotes."""
    mark = name[0]
    return name[1:-1].replace(mark * 2, mark) if mark in '`"' else name


def _named(found: Iterable[re.Match[str]], database: str) -> Iterator[tuple[str, str]]:
    """Yields databases and tables; the last two groups of each match are those of a name."""
    for one in found:
        first, second = one.groups()[-2:]
        if second is not None:
            yield plain_name(first), plain_name(second)
        elif first.upper() not in _NO_NAMES and not first.isdigit():
            yield database, plain_name(first)


def _words(text: str) -> str:
    return " ".join(text.upper().split())

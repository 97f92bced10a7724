"""PostgreSQL's types, and values of them that are easily lost on the way, as SQL expressions drawn from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import psycopg

Draw: TypeAlias = Callable[[random.Random], str]
"""Returns a value's text."""

_CHARACTERS: Final = "ab Z0'\"\\{}(),;:%$<>/\t\n\r\x01\x7fäß€\u2028𝄞\ufeff"


@dataclass(frozen=True)
class Kind:
    """A type.

    Attributes:
        type: its name in SQL.
        draw: makes a value's text.
        ordered: whether a primary key may have it.
    """

    type: str
    draw: Draw
    ordered: bool = True

    def value(self, chance: random.Random) -> str:
        """Returns a value as an SQL expression."""
        return f"{quoted(self.draw(chance))}::{self.type}"


def quoted(text: str) -> str:
    """Returns a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def text(chance: random.Random, most: int = 12) -> str:
    return "".join(chance.choices(_CHARACTERS, k=chance.randrange(most + 1)))


def _one_of(*texts: str) -> Draw:
    return lambda chance: chance.choice(texts)


def _either(*draws: Draw) -> Draw:
    return lambda chance: chance.choice(draws)(chance)


def _whole(bits: int) -> Draw:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return _either(_one_of(str(low), str(high), "0", "-1", "7"), lambda chance: str(chance.randint(low, high)))


def _digits(chance: random.Random, before: int, after: int) -> str:
    whole = chance.randrange(10 ** chance.randrange(before + 1))
    fraction = "".join(chance.choices("0123456789", k=chance.randrange(after + 1)))
    return f"{chance.choice(('', '-'))}{whole}{'.' if fraction else ''}{fraction}"


def _float(chance: random.Random, double: bool) -> str:
    names = ["NaN", "Infinity", "-Infinity", "0", "-0", "0.1", "1e-37", "-1e37", "16777217", "1.17549435e-38"]
    doubles = [
        "5e-324",
        "1.7976931348623157e308",
        "-2.2250738585072014e-308",
        "0.30000000000000004",
        "9007199254740993",
    ]
    return chance.choice([*names, *(doubles if double else ["1e-45", "3.4028235e38"]), repr(chance.gauss(0, 1e3))])


def _document(chance: random.Random, depth: int = 0) -> Any:
    scalars: list[Any] = [None, True, 0, -1.5, 2**53 + 1, text(chance).replace("\0", ""), "null", '"x"', "{}", ""]
    if depth > 2 or chance.random() < 0.4:
        return chance.choice(scalars)
    inner = [_document(chance, depth + 1) for _ in range(chance.randrange(3))]
    return inner if chance.random() < 0.5 else {text(chance, 3): value for value in inner}


_DOCUMENTS: Final = (
    "null", '"abc"', '"null"', '""', "12345678901234567890.123456789",
    '{"a": 123456789012345678901234567890, "b": 1e-400}',
    "[]", "{}", "1.10", "[1.0, 1e5, -0]", "true", '"\\u20ac \\\\ \\" \\n"', '{"a": {"a": [[], {}]}}',
)  # fmt: skip
_TEXTS_OF_DOCUMENTS: Final = (' { "b" :1,\n "a" : 2, "b": 3 }  ', '"\\u0000"', '"\\ud800"', "1E+2", "[ 1 ,2]", '"\\/"')
_MOMENTS: Final = (
    "2026-11-23 10:11:12.123456", "0001-01-01 00:00:00", "0044-03-15 12:00:00 BC", "4714-11-24 00:00:00 BC",
    "294276-12-31 23:59:59.999999", "infinity", "-infinity", "1900-01-01 00:00:00", "2000-02-29 23:59:59.5",
    "12026-01-02 03:04:05",
)  # fmt: skip
_DAYS: Final = ("2026-11-23", "0001-01-01", "0044-03-15 BC", "4714-11-24 BC", "5874897-12-31", "infinity", "-infinity")
_TIMES: Final = ("00:00:00", "24:00:00", "23:59:59.999999", "12:34:56.7")
_SPANS: Final = (
    "0", "1 year 2 mons 3 days 04:05:06.789", "-1 mon +2 days -03:00:00.5", "-00:00:00.000001", "178000000 years",
    "-178000000 years", "1 mon -1 day", "-1 day +23:59:59", "2562047788 hours", "13 mons",
)  # fmt: skip
_XML: Final = ("<a/>", "<a>é &amp; &lt;</a>", "text <b/> more", "<!-- c --><a x='1'/>", '<?xml version="1.1"?><a/>', "")


def basic() -> list[Kind]:
    """Returns PostgreSQL's own types."""
    return [
        Kind("smallint", _whole(16)),
        Kind("integer", _whole(32)),
        Kind("bigint", _whole(64)),
        Kind("oid", _one_of("0", "1", "4294967295")),
        Kind(
            "numeric",
            _either(partial(_digits, before=40, after=30), _one_of("NaN", "Infinity", "1.000", "-0.0", "1e-30")),
        ),
        Kind("numeric(20,5)", _either(partial(_digits, before=15, after=7), _one_of("NaN"))),
        Kind("real", partial(_float, double=False)),
        Kind("double precision", partial(_float, double=True)),
        Kind("money", _one_of("0", "-92233720368547758.08", "92233720368547758.07", "1234.56", "-0.01")),
        Kind("boolean", _one_of("t", "f")),
        Kind("text", text),
        Kind("varchar(12)", text),
        Kind("character(12)", text),
        Kind('"char"', _one_of("a", "", "'")),
        Kind("name", text),
        Kind("bpchar", text),
        Kind("bytea", lambda chance: "\\x" + chance.randbytes(chance.randrange(9)).hex()),
        Kind("timestamp", _one_of(*_MOMENTS)),
        Kind("timestamp(0)", _one_of(*_MOMENTS[5:])),
        Kind("timestamptz", _one_of(*(f"{moment}+05:45" for moment in _MOMENTS[:3]), *_MOMENTS[5:])),
        Kind("date", _one_of(*_DAYS)),
        Kind("time", _one_of(*_TIMES)),
        Kind("timetz", _one_of(*(time + zone for time in _TIMES for zone in ("+00", "-15:59:59", "+05:45")))),
        Kind("interval", _one_of(*_SPANS)),
        Kind("interval day to second(3)", _one_of(*_SPANS[:4])),
        Kind("uuid", lambda chance: f"{chance.getrandbits(128):032x}"),
        Kind("jsonb", _either(_one_of(*_DOCUMENTS), lambda chance: json.dumps(_document(chance)))),
        Kind(
            "json",
            _either(_one_of(*_DOCUMENTS, *_TEXTS_OF_DOCUMENTS), lambda chance: json.dumps(_document(chance))),
            ordered=False,
        ),
        Kind("jsonpath", _one_of("$.a[*] ? (@ > 1)", 'strict $."x y"'), ordered=False),
        Kind("bit(5)", lambda chance: f"{chance.getrandbits(5):05b}"),
        Kind("bit varying", lambda chance: f"{chance.getrandbits(40):b}" if chance.random() < 0.8 else ""),
        Kind("inet", _one_of("10.1.2.3", "10.1.2.3/8", "::1", "fe80::1/64")),
        Kind("cidr", _one_of("10.0.0.0/8", "::/0")),
        Kind("macaddr", _one_of("08:00:2b:01:02:03")),
        Kind("macaddr8", _one_of("08:00:2b:01:02:03:04:05")),
        Kind("point", _one_of("(0.1,-0)", "(NaN,Infinity)", "(1e-300,1e300)"), ordered=False),
        Kind("line", _one_of("{1,-1,0.3}"), ordered=False),
        Kind("lseg", _one_of("[(0,0),(1.1,1)]"), ordered=False),
        Kind("box", _one_of("(1,1),(0,0.1)"), ordered=False),
        Kind("path", _one_of("[(0,0),(1,1)]", "((0,0),(1,0.7))"), ordered=False),
        Kind("polygon", _one_of("((0,0),(1,0),(0,1.3))"), ordered=False),
        Kind("circle", _one_of("<(0,0.1),2.5>"), ordered=False),
        Kind("tsvector", _one_of("", "'a b':1A,2 'it''s':3", "fat:2,4 cat:3B")),
        Kind("tsquery", _one_of("fat & (rat | 'c d':*)", "!a <-> b:AB")),
        Kind("pg_lsn", _one_of("0/0", "FFFFFFFF/FFFFFFFF")),
        Kind("xid8", _one_of("0", "18446744073709551615")),
        Kind("tid", _one_of("(0,1)")),
        Kind("pg_snapshot", _one_of("10:20:10,14,15"), ordered=False),
        Kind("regclass", _one_of("pg_catalog.pg_class", 'somewhere."Odd \'name"')),
        Kind("regtype", _one_of("integer", "timestamp with time zone", "somewhere.mood")),
        Kind("regnamespace", _one_of("pg_catalog", "public")),
        Kind("regconfig", _one_of("english", "simple")),
        Kind("int4range", _one_of("empty", "[1,5)", "(,)", "[,0]")),
        Kind("int8range", _one_of("[1,9223372036854775807)")),
        Kind("numrange", _one_of("[1.10,2.200)", "(-Infinity,NaN)", "empty", "(,1e-30]")),
        Kind("daterange", _one_of("[2026-01-01,infinity)", "[0044-03-15 BC,)", "empty")),
        Kind("tsrange", _one_of('["2026-01-01 10:00:00.5",infinity]', "(,)")),
        Kind("tstzrange", _one_of('["2026-01-01 10:00:00.5+02","2026-02-01 00:00:00+05:45")', "empty")),
        Kind("int4multirange", _one_of("{}", "{[1,3),[7,9)}")),
        Kind("tstzmultirange", _one_of("{}", "{[2026-01-01,)}")),
    ]


MADE: Final = """
    CREATE SCHEMA somewhere;
    CREATE TABLE somewhere."Odd 'name" ();
    CREATE TYPE somewhere.mood AS ENUM ('glad', 'sad, "very"', 'it''s', ' ');
    CREATE DOMAIN doc AS jsonb;
    CREATE DOMAIN inner_doc AS doc;
    CREATE DOMAIN raw_doc AS json CHECK (length(VALUE::text) < 9999);
    CREATE DOMAIN yes AS boolean;
    CREATE DOMAIN "Some Number" AS numeric(20,5);
    CREATE DOMAIN counted AS bigint CHECK (VALUE IS DISTINCT FROM 13);
    CREATE DOMAIN words AS text[] CHECK (cardinality(VALUE) < 99);
    CREATE TYPE pair AS (n numeric, "t x" text, d jsonb, w text[]);
    CREATE TYPE nested AS (p pair, at timestamptz, r doc, b boolean);
    CREATE DOMAIN dpair AS pair;
    CREATE TYPE text_range AS RANGE (subtype = text);
"""
"""The types that :func:`made` uses; also the ones that no value has come from."""


@dataclass(frozen=True)
class ArrayOf(Kind):
    """An array of another type."""

    def value(self, chance: random.Random) -> str:
        return f"{self.draw(chance)}::{self.type}"


def array_of(kind: Kind) -> Kind:
    """Returns the type of arrays of a type, also with several dimensions and with bounds of their own."""
    array = f"{kind.type}[]"

    def draw(chance: random.Random) -> str:
        def element() -> str:
            return "NULL" if chance.random() < 0.2 else kind.value(chance)

        match chance.randrange(4):
            case 0:
                return "'{}'"
            case 1:
                return f"ARRAY[[{element()}, {element()}], [{element()}, {element()}]]"
            case 2:
                return f"array_fill({kind.value(chance)}, ARRAY[2], ARRAY[-3])"
            case _:
                return f"ARRAY[{', '.join(element() for _ in range(chance.randrange(1, 4)))}]"

    return ArrayOf(array, draw, kind.ordered)


def _row_of(name: str, kinds: Sequence[Kind], *, ordered: bool) -> Kind:
    def draw(chance: random.Random) -> str:
        values = ("NULL" if chance.random() < 0.2 else kind.value(chance) for kind in kinds)
        return f"ROW({', '.join(values)})"

    return ArrayOf(name, draw, ordered)


def _domain(name: str, kind: Kind) -> Kind:
    return ArrayOf(name, kind.value, kind.ordered)


def made() -> list[Kind]:
    """Returns types of a database's own: enums, domains, composite types, a range; and arrays of everything."""
    known = {kind.type: kind for kind in basic()}
    doc = _domain("doc", known["jsonb"])
    words = array_of(known["text"])
    pair = _row_of("pair", (known["numeric"], known["text"], known["jsonb"], words), ordered=True)
    own = [
        Kind("somewhere.mood", _one_of("glad", 'sad, "very"', "it's", " ")),
        doc,
        _domain("inner_doc", doc),
        _domain("raw_doc", known["json"]),
        _domain("yes", known["boolean"]),
        _domain('"Some Number"', known["numeric(20,5)"]),
        _domain("counted", known["integer"]),
        _domain("words", words),
        pair,
        _domain("dpair", pair),
        _row_of("nested", (pair, known["timestamptz"], doc, known["boolean"]), ordered=True),
        Kind("text_range", _one_of("empty", '["a,b","c)"]', "(,z)")),
    ]
    return own + [array_of(kind) for kind in [*known.values(), *own] if kind.type != "words"]


EXTENSIONS: Final = {
    "hstore": Kind("hstore", _one_of("", '"a b"=>"c\\"d", e=>NULL', 'x=>"NULL"', '"", ""=>""'[4:])),
    "citext": Kind("citext", text),
    "ltree": Kind("ltree", _one_of("", "a.b.c")),
}
"""Types of extensions that come with PostgreSQL and need not be installed."""


def of_extensions(url: str) -> list[Kind]:
    """Returns the types of the extensions that a server has."""
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
    return [kind for name, kind in EXTENSIONS.items() if (name,) in names]


def optional(url: str) -> list[Kind]:
    """Returns the types that not every build of PostgreSQL has."""
    with psycopg.connect(url) as connection:
        try:
            connection.execute("SELECT '<a/>'::xml")
        except psycopg.errors.FeatureNotSupported:
            return []
    return [Kind("xml", _one_of(*_XML), ordered=False)]

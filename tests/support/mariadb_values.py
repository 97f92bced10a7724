"""MariaDB's types, and values of them that are easily lost on the way, as SQL expressions drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from support.mysql_server import IS_MYSQL
from support.type_values import Draw

_CHARACTERS: Final = "ab Z0'\"\\{}(),;:%$<>/\t\n\r\x01\x7fäß€\u2028𝄞\ufeff"
_LATIN: Final = "ab Zäß€'\\\x81ÿ"


@dataclass(frozen=True)
class MariadbType:
    """A type: how a column is declared, and what makes an expression for a value."""

    type: str
    value: Draw


def types() -> list[MariadbType]:
    """Returns all types that are carried."""
    return [*_numbers(), *_times(), *_texts(), *_others()]


def _one_of(*texts: str) -> Draw:
    return lambda chance: chance.choice(texts)


def _whole(bits: int) -> list[tuple[str, Draw]]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    signed = _one_of(str(low), str(high - 1), "0", "-1", "7")
    return [("", signed), (" UNSIGNED", _one_of("0", "1", str(high), str(2 * high - 1)))]


def _numbers() -> list[MariadbType]:
    most = 30 if IS_MYSQL else 38
    sizes = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
    whole = [MariadbType(f"{name}{sign}", draw) for name, bits in sizes.items() for sign, draw in _whole(bits)]
    decimals = [
        MariadbType(f"DECIMAL({precision},{scale})", _decimal(precision, scale))
        for precision, scale in ((1, 0), (5, 2), (9, 9), (10, 0), (18, 9), (20, 1), (38, 30), (65, 0), (65, most))
    ]
    floats = _one_of("0", "-0.0", "0.1", "1e30", "-3.4e38", "1.17549435e-38", "16777217", "3.14159274")
    doubles = _one_of("0", "0.1", "1e308", "-1.7976931348623157e308", "4.9e-324", "0.30000000000000004", "1e22")
    return [
        *whole, *decimals, MariadbType("BOOLEAN", _one_of("TRUE", "FALSE", "2")), MariadbType("FLOAT", floats),
        MariadbType("DOUBLE", doubles), MariadbType("FLOAT UNSIGNED", _one_of("0", "0.5", "12345.678")),
        MariadbType("BIT(1)", _one_of("b'0'", "b'1'")), MariadbType("BIT(10)", _one_of("b'1000000001'", "b'0'")),
        MariadbType("BIT(64)", _one_of("b'1'", "~0")), MariadbType("INT(5) ZEROFILL", _one_of("0", "42", "4294967295")),
    ]  # fmt: skip


def _decimal(precision: int, scale: int) -> Draw:
    def draw(chance: random.Random) -> str:
        digits = "".join(chance.choices("0123456789", k=precision))
        digits = chance.choice((digits, "9" * precision, "0" * (precision - 1) + "1"))
        whole, rest = digits[: precision - scale] or "0", digits[precision - scale :]
        return f"{chance.choice(('', '-'))}{whole}{'.' if rest else ''}{rest}"

    return draw


def _times() -> list[MariadbType]:
    found = [
        MariadbType("DATE", _one_of("'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "'2024-00-00'")),
        MariadbType("YEAR", _one_of("'0000'", "1901", "2155", "2024")),
    ]
    for digits in (0, 1, 2, 3, 4, 5, 6):
        part = ".987654"[: digits + 1] if digits else ""
        moments = (f"'2024-02-29 23:59:59{part}'", f"'1970-01-01 00:00:01{part}'", "'0000-00-00 00:00:00'")
        times = (f"'838:59:58{part}'", f"'-838:59:58{part}'", f"'-00:00:00{part}'", "'00:00:00'", f"'12:34:56{part}'")
        far = (f"'9999-12-31 23:59:59{part}'", "'0000-01-01 00:00:00'", f"'2024-00-00 01:02:03{part}'")
        found += [
            MariadbType(f"DATETIME({digits})", _one_of(*moments, *far)),
            MariadbType(f"TIMESTAMP({digits})", _one_of(*moments, f"'2038-01-19 03:14:06{part}'")),
            MariadbType(f"TIME({digits})", _one_of(*times)),
        ]
    return found


def _texts() -> list[MariadbType]:
    found = [
        MariadbType(f"{kind} CHARACTER SET utf8mb4", _text(_CHARACTERS, most))
        for kind, most in (
            ("CHAR(12)", 12),
            ("VARCHAR(300)", 40),
            ("TEXT", 400),
            ("TINYTEXT", 20),
            ("LONGTEXT", 70_000),
        )
    ]
    sets = {"latin1": _LATIN, "latin2": "aběšč", "koi8r": "абвЯ", "utf16": _CHARACTERS, "utf32": "aä𝄞", "ucs2": "aä€"}
    sets |= {
        "sjis": "aあ\\~",
        "gbk": "a中",
        "euckr": "a한",
        "cp1251": "aЖ",
        "swe7": "aÅ",
        "utf8mb3": "aä€",
        "ascii": "a'\\",
    }
    found += [MariadbType(f"VARCHAR(20) CHARACTER SET {name}", _text(letters, 12)) for name, letters in sets.items()]
    return [
        *found,
        MariadbType("BINARY(5)", _bytes(5)), MariadbType("VARBINARY(300)", _bytes(20)),
        MariadbType("BLOB", _bytes(400)),
        MariadbType("BINARY(16)", _bytes(16)), MariadbType("LONGBLOB", _bytes(70_000)),
    ]  # fmt: skip


def _others() -> list[MariadbType]:
    documents = ('\'{"a": [1, 2.50, null], "b":"ä"}\'', "'[]'", "'\"x\"'", "'null'", "'1e400'")
    return [
        MariadbType("ENUM('a','b''c','ä','d,e')", _one_of("'a'", "'b''c'", "'ä'", "'d,e'")),
        MariadbType(f"ENUM({', '.join(repr(f'm{n}') for n in range(300))})", _one_of("'m0'", "'m299'")),
        MariadbType("SET('x','y','ä')", _one_of("''", "'x'", "'x,y,ä'", "'ä'")),
        MariadbType(f"SET({', '.join(repr(f's{n}') for n in range(64))})", _one_of("'s0,s63'", "''", "'s40'")),
        *([_json_of_mysql()] if IS_MYSQL else [MariadbType("JSON", _one_of(*documents)), *_of_mariadb_alone()]),
    ]


def _of_mariadb_alone() -> list[MariadbType]:
    return [
        MariadbType("UUID", _uuid),
        MariadbType("INET6", _one_of("'::'", "'::1'", "'::ffff:1.2.3.4'", "'2001:db8::ff00:42:8329'")),
        MariadbType("INET4", _one_of("'0.0.0.0'", "'192.168.1.255'")),
    ]


def _json_of_mysql() -> MariadbType:
    """Returns MySQL's JSON, whose documents have values of its own types, too."""
    made = (
        "CAST('2024-02-29 23:59:59.987654' AS DATETIME(6))", "CAST('-838:59:58.5' AS TIME(6))", "DATE'2024-02-29'",
        "CAST('-12.340' AS DECIMAL(10,3))", "X'00ff41'", "18446744073709551615", "-9223372036854775808", "1e300",
        "TRUE", "b'101'", "REPEAT('ä', 70000)",
    )  # fmt: skip
    return MariadbType("JSON", _one_of(
        "'{\"a\": [1, 2.50, null], \"b\":\"ä\"}'", "'[]'", "'\"x\"'", "'null'", "'[1e-7, 1e17, 0.1, 100.0, -0.0]'",
        *(f"JSON_ARRAY({one}, JSON_OBJECT('k', {one}))" for one in made),
    ))  # fmt: skip


def _uuid(chance: random.Random) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return chance.choice(
        (f"'{digits}'", "'00000000-0000-0000-0000-000000000000'", "'ffffffffffffffffffffffffffffffff'")
    )


def _text(letters: str, most: int) -> Draw:
    def draw(chance: random.Random) -> str:
        text: Sequence[str] = chance.choices(letters, k=chance.choice((0, 1, chance.randrange(most + 1), most)))
        return f"CONVERT(X'{''.join(text).encode().hex()}' USING utf8mb4)"

    return draw


def _bytes(most: int) -> Draw:
    def draw(chance: random.Random) -> str:
        raw = chance.randbytes(chance.choice((0, 1, most)))
        return f"X'{chance.choice((raw, raw + bytes(most - len(raw)), bytes(len(raw)))).hex()}'"

    return draw

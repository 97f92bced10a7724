"""DynamoDB's expressions, as far as Kainite writes them: conditions, changes of an item, bounds of a query."""

from __future__ import annotations

import re
from typing import Any

from botocore.exceptions import ClientError

Item = dict[str, Any]
"""Attributes by their names, each a mapping of its type to its value; also an expression's values."""


def check(item: Item | None, condition: str | None, values: Item, names: dict[str, str] | None = None) -> None:
    """Raises DynamoDB's ClientError, with the item that is there, if the condition does not hold."""
    if condition and not holds(item or {}, condition, values, names or {}):
        response: Any = {"Error": {"Code": "ConditionalCheckFailedException", "Message": "the condition does not hold"}}
        response |= {"Item": dict(item)} if item is not None else {}
        raise ClientError(response | {"ResponseMetadata": {"RetryAttempts": 0}}, "Write")


def holds(item: Item, condition: str, values: Item, names: dict[str, str]) -> bool:
    """Tells whether a condition holds: terms joined by AND, and such terms, in parentheses, joined by OR."""
    options = (option[1:-1] if option.startswith("(") else option for option in condition.split(" OR "))
    return any(all(_holds(item, term, values, names) for term in option.split(" AND ")) for option in options)


def changed(item: Item, update: str, values: Item, names: dict[str, str]) -> Item:
    """Returns the item as an update expression leaves it."""
    new = dict(item)
    parts = re.split(r"\b(SET|REMOVE|ADD)\b", update)[1:]
    for clause, terms in zip(parts[::2], parts[1::2], strict=True):
        for term in terms.split(","):
            _change(new, clause, term.strip(), values, names)
    return new


def within(range_key: str, condition: str, values: Item) -> bool:
    """Tells whether a range key is within the bounds of a query's key condition, ``p = :p AND s …``."""
    first, last = (values[name]["S"] if name in condition else None for name in (":first", ":last"))
    return (first is None or range_key >= first) and (last is None or range_key <= last)


def _holds(item: Item, term: str, values: Item, names: dict[str, str]) -> bool:
    if found := re.fullmatch(r"attribute_(not_)?exists\((\S+)\)", term):
        return (names.get(found[2], found[2]) in item) is not bool(found[1])
    name, sign, value = term.split()
    there, wanted = item.get(names.get(name, name)), values[value]
    if sign == "=":
        return bool(there == wanted)
    assert sign == "<", f"the simulation does not know the condition {term!r}"
    return there is not None and int(there["N"]) < int(wanted["N"])


def _change(item: Item, clause: str, term: str, values: Item, names: dict[str, str]) -> None:
    if clause == "REMOVE":
        item.pop(names.get(term, term), None)
        return
    name, value = term.split(" = ") if clause == "SET" else term.split()
    name = names.get(name, name)
    if clause == "ADD":
        item[name] = {"N": str(int(item.get(name, {"N": "0"})["N"]) + int(values[value]["N"]))}
    else:
        item[name] = values[value]

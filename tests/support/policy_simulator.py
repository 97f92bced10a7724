"""Decides whether IAM policies allow a request, as AWS documents it: *Policy evaluation logic*, *Condition operators*.

It takes identity-based policies of one principal: an explicit Deny wins, then any Allow, else the request is denied.
What it does not know (another operator, a policy variable, another element of a statement) is an error: a policy that
uses more than is evaluated must not look as if it held. moto enforces no conditions but those of trust policies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

_ELEMENTS = frozenset({"Sid", "Effect", "Action", "Resource", "Condition"})
_SETS = ("ForAllValues", "ForAnyValue")


@dataclass(frozen=True, slots=True)
class AwsRequest:
    """One request, as IAM sees it.

    Attributes:
        action: such as ``dynamodb:GetItem``.
        resource: the ARN that it is about; ``*`` for an action that has none.
        context: condition keys in lower case, each with its values; a key that the request lacks is absent.
    """

    action: str
    resource: str
    context: frozenset[tuple[str, tuple[str, ...]]] = frozenset()


def request(action: str, resource: str, **context: Iterable[str]) -> AwsRequest:
    """Returns a request; ``dynamodb_LeadingKeys=["a"]`` is the condition key ``dynamodb:LeadingKeys``."""
    keys = {(key.replace("_", ":", 1).lower(), tuple(values)) for key, values in context.items()}
    return AwsRequest(action, resource, frozenset(keys))


def allows(documents: Iterable[Mapping[str, Any]], asked: AwsRequest) -> bool:
    """Returns whether the policies together allow the request.

    Raises:
        ValueError: a policy has something that is not evaluated here.
    """
    statements = [statement for document in documents for statement in listed(document["Statement"])]
    effects = {_effect(statement) for statement in statements if _meets(statement, asked)}
    return effects == {"Allow"}


def grains(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields a policy for each single permission: one action, one resource, one value of each leading key."""
    for statement in listed(document["Statement"]):
        conditions = statement.get("Condition", {})
        narrow = [
            [(operator, key, value) for value in listed(values)]
            for operator, keys in conditions.items()
            for key, values in keys.items()
            if key.endswith(":LeadingKeys")
        ]
        for action, resource, *chosen in product(listed(statement["Action"]), listed(statement["Resource"]), *narrow):
            own: dict[str, dict[str, Any]] = {operator: dict(keys) for operator, keys in conditions.items()}
            for operator, key, value in chosen:
                own[operator][key] = value
            yield {"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource, "Condition": own}]}


def listed(value: Any) -> list[Any]:
    """Returns a policy's value as a list: one that is alone may stand without."""
    return list(value) if isinstance(value, list) else [value]


def _effect(statement: Mapping[str, Any]) -> str:
    effect = str(statement["Effect"])
    if effect not in ("Allow", "Deny"):
        raise ValueError(f"{effect!r} is no effect")
    return effect


def _meets(statement: Mapping[str, Any], asked: AwsRequest) -> bool:
    if unknown := statement.keys() - _ELEMENTS:
        raise ValueError(f"a statement has {sorted(unknown)}, which is not evaluated here")
    context = dict(asked.context)
    held = [
        _holds(operator, context.get(key.lower()), listed(values))
        for operator, keys in statement.get("Condition", {}).items()
        for key, values in keys.items()
    ]
    return (
        any(like(asked.action.lower(), pattern.lower()) for pattern in listed(statement["Action"]))
        and any(like(asked.resource, pattern) for pattern in listed(statement["Resource"]))
        and all(held)
    )


def like(value: str, pattern: str) -> bool:
    """Returns whether a value matches a pattern, in which ``*`` is any text and ``?`` any one character."""
    if "${" in pattern:
        raise ValueError(f"{pattern!r} has a policy variable, which is not evaluated here")
    parts = {"*": ".*", "?": "."}
    return re.fullmatch("".join(parts.get(each) or re.escape(each) for each in pattern), value, re.DOTALL) is not None


def _equal(value: str, pattern: str) -> bool:
    return value == pattern


_OPERATORS: Mapping[str, tuple[Callable[[str, str], bool], bool]] = {
    "StringEquals": (_equal, True),
    "StringNotEquals": (_equal, False),
    "StringLike": (like, True),
    "StringNotLike": (like, False),
}
"""Each operator's comparison, and whether it wants one of the policy's values to compare well, or none."""


def _holds(operator: str, values: tuple[str, ...] | None, wanted: list[str]) -> bool:
    if operator == "Null":
        return str(values is None).lower() == str(wanted[0]).lower()
    of_set, _, name = operator.rpartition(":")
    base = name.removesuffix("IfExists")
    if base not in _OPERATORS or (of_set and of_set not in _SETS):
        raise ValueError(f"the condition operator {operator!r} is not evaluated here")
    compare, positive = _OPERATORS[base]
    if values is None:
        return name != base or (of_set == "ForAllValues" if of_set else not positive)
    if not of_set and len(values) != 1:
        raise ValueError(f"{operator} compares one value, and the request has {values}")
    met = [any(compare(value, each) for each in wanted) == positive for value in values]
    return any(met) if of_set == "ForAnyValue" else all(met)

"""Checks a database's address before any library reads it.

A driver and a person read an address differently when its password holds a raw ``@``, ``/``, ``%`` or space. The
driver's message then quotes a piece of the password as a host, a port or a token. So this module refuses an address
that can be read in two ways, and its message quotes nothing of the address. Every kind of target whose address has the
form ``scheme://user:password@host`` uses it. Pure.
"""

from __future__ import annotations

import re
from typing import Final

_USER: Final = re.compile(r"[^\s@/:]*(?::[^\s@/:]*)?")
_HOST: Final = r"(?:[^\s@/:,\[\]?#]*|\[[0-9A-Fa-f:.%a-z]*\])(?::[0-9]*)?"
_HOSTS: Final = re.compile(rf"{_HOST}(?:,{_HOST})*")
_DATABASE: Final = re.compile(r"[^\s@/:?]*")
_PARAMETER: Final = re.compile(r"[A-Za-z_]+=[^\s=&]*")
_WRONG_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")

_ADVICE: Final = (
    "user and password are written percent-encoded (@ as %40, / as %2F, : as %3A, ? as %3F, % as %25, a space as %20)"
)


def problem_of_database_url(url: str) -> str | None:
    """Returns what is wrong with ``scheme://user:password@host:port,…/database?name=value&…``; None for a sound one."""
    rest = url.partition("://")[2]
    if _WRONG_ESCAPE.search(rest):
        return f"holds a % that begins no percent-encoded character; {_ADVICE}"
    user, at, place = rest.rpartition("@") if "@" in rest.partition("?")[0] else ("", "", rest)
    if at and not _USER.fullmatch(user):
        return f"can be read in two ways before its last @; {_ADVICE}"
    hosts, _, more = _cut(place)
    database, question, query = more.partition("?")
    if not _HOSTS.fullmatch(hosts) or not _DATABASE.fullmatch(database):
        return f"holds no host names and ports where they are expected; {_ADVICE}"
    if question and query and not all(_PARAMETER.fullmatch(pair) for pair in query.split("&")):
        return f"holds a parameter that is not name=value behind the ?; {_ADVICE}"
    return None


def _cut(place: str) -> tuple[str, str, str]:
    """Returns the hosts, the separator, and what follows: the database, or nothing before a question mark."""
    before, question, query = place.partition("?")
    hosts, slash, database = before.partition("/")
    return hosts, slash or question, f"{database}{question}{query}"

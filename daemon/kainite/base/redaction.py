"""Keeps secrets out of every text that leaves Kainite: log events, error messages, reports and tables.

Two nets, one behind the other:

* *What is known*: :func:`learn` is told each secret that the settings hold, when they are read. :func:`redacted` hides
  a known secret wherever it stands, whoever wrote the text (a driver, a child, DynamoDB), and however its characters
  are percent-encoded or escaped there.
* *What has the shape of a secret*: a password in an address or a data source name, ``password=…``, ``DB_PASS=…``,
  ``secret: …``, ``--db-pass …``, ``X-Api-Key: …``, ``Authorization: …``, a bearer token, a private key in PEM.
  :func:`redacted` hides these in any text, :func:`redacted_words` in a command line.

Values of rows are data that a person must compare with the target, so a column that is called "token" is no secret:
:class:`RowValues` and :func:`without_known` hide in them what is known, and nothing for its name or its shape.

Texts go through here where they leave the process (:mod:`kainite.base.logs`, :mod:`kainite.cli.terminal`, the HTTP
endpoint), and already where another process will show them: the lines of a program's standard error, which end in the
fleet's table, and what a loader says of a unit, which ends in the log.

A secret of fewer than :data:`SHORTEST` characters is known by its shape alone, since its characters stand everywhere.
A secret of letters and digits that is shorter than :data:`ANYWHERE` is hidden where it stands as a word: the password
"postgres" stands in "postgresql" by chance.

The known secrets belong to the process. A process that gets its settings in another way than from
:mod:`kainite.settings.loading.examination` (a Spark task) calls :func:`learn` itself.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

HIDDEN: Final = "***"
SHORTEST: Final = 4
ANYWHERE: Final = 12

# "pass" is a word of its own in "DB_PASS", "db-pass", "pgpass" and "pass", and none in "bypass" and "compass".
_PASS = r"(?:(?<![a-z])|(?<=db)|(?<=pg)|(?<=sql)|(?<=user)|(?<=smtp)|(?<=ftp)|(?<=ldap)|(?<=admin)|(?<=root))pass"
_NAMES = (
    rf"pass(?:word|wd|phrase)|{_PASS}|pwd|secret|token|api[-_]?key|account[-_]?key|private[-_]?key"
    r"|(?:secret|access)[-_]?(?:access[-_]?)?key|credentials?|x-amz-signature"
)
# Before a colon only what is no word of prose there: "unexpected token: }" and "pass: 3 of 5" hide nothing.
_BEFORE_COLON = (
    r"pass(?:word|wd|phrase)|pwd|(?:token|pass)[\"']|(?<=[_-])(?:token|pass)|secret(?:[-_]?(?:access[-_]?)?key)?"
    r"|(?:api|access|account|private)[-_]?key"
)
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s&,;"'|]+)"""
_NAMED = re.compile(
    rf"""(?P<name>(?:{_NAMES})["']?\s{{0,4}}=\s{{0,4}}|(?:{_BEFORE_COLON})["']?\s{{0,4}}:(?!//)\s{{0,4}}"""
    rf"""|--[a-z0-9_.-]{{0,40}}(?:{_NAMES})\s{{1,4}}|authorization["']?\s{{0,4}}[:=]\s{{0,4}}(?:[a-z]{{1,20}}\s{{1,4}})?"""
    rf"""|\bcookie["']?\s{{0,4}}:\s{{0,4}}|\bbearer\s{{1,4}}){_VALUE}""",
    re.IGNORECASE | re.DOTALL,
)
_ONE_OF = ("pass", "pwd", "secret", "token", "key", "credential", "signature", "authorization", "cookie", "bearer")
"""One of these stands, case-folded, in each text that _NAMED finds something in."""
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(?:-----END|\Z)", re.DOTALL)
_OPTION = re.compile(rf"-{{1,2}}[a-z0-9_.-]*(?:{_NAMES})", re.IGNORECASE)
_SECRET_NAME = re.compile(rf"[a-z0-9_.-]*(?:{_NAMES})", re.IGNORECASE)
_ASSIGNED = re.compile(rf"(?P<name>.*?(?:{_NAMES})=)(?P<value>.+)", re.IGNORECASE | re.DOTALL)
_USER_OPTIONS = frozenset({"-u", "--user"})
_QUERY = re.compile(rf"[?&][a-z0-9_.-]{{0,40}}(?:{_NAMES})=(?P<value>[^&]*)", re.IGNORECASE)
_RUN = re.compile(r"\S+")
_NO_QUOTES = re.compile(r"[A-Za-z0-9@%+=:,./_*-]*\*\*\*[A-Za-z0-9@%+=:,./_*-]*")

_known: dict[str, str] = {}
_pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class RowValues:
    """Values of rows within a tree of other values: keys, rows, deltas."""

    value: Any


def learn(secrets: Iterable[str]) -> None:
    """Makes secrets known to this process, each as it is written and as it reads without percent-encoding."""
    global _pattern
    spellings = {spelling for secret in secrets for spelling in (secret, unquote(secret)) if len(spelling) >= SHORTEST}
    fresh = spellings - _known.keys()
    if fresh:
        _known.update((secret, _spelled(secret)) for secret in fresh)
        _pattern = re.compile("|".join(_known[secret] for secret in sorted(_known, key=len, reverse=True)))


def forget() -> None:
    """Forgets all known secrets; for tests, which have many settings in one process."""
    global _pattern
    _known.clear()
    _pattern = None


def redacted(text: str) -> str:
    """Returns a text without known secrets and without what has the shape of one; takes time linear in its length."""
    text = without_known(text)
    if "://" in text and "@" in text:
        text = _RUN.sub(lambda found: redacted_url(found[0]), text)
    if "PRIVATE KEY-----" in text:
        text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text)
    folded = text.casefold()
    if not any(word in folded for word in _ONE_OF):  # as in most lines; the pattern takes much longer
        return text
    return _NAMED.sub(lambda found: found["name"] + HIDDEN, text)


def without_known(text: str) -> str:
    """Returns a text without known secrets; what has the shape of a secret stays."""
    return text if _pattern is None else _pattern.sub(HIDDEN, text)


def redacted_tree(value: Any) -> Any:
    """Returns a value of JSON's kinds with :func:`redacted` applied to each text in it, keys too.

    A text whose key has the name of a secret is hidden. Of :class:`RowValues`, only known secrets are.
    """
    if isinstance(value, RowValues):
        return _tree(value.value, without_known, lambda _, item: redacted_tree(RowValues(item)))
    return _tree(value, redacted, _under)


def _tree(value: Any, shown: Callable[[str], str], under: Callable[[Any, Any], Any]) -> Any:
    if isinstance(value, str):
        # An enum of strings stays what it is.
        return shown(value) if type(value) is str else value
    if isinstance(value, Mapping):
        return {shown(key) if isinstance(key, str) else key: under(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [under(None, item) for item in value]
    return value


def _under(key: Any, value: Any) -> Any:
    is_secret = isinstance(key, str) and type(value) is str and value and _SECRET_NAME.fullmatch(key)
    return HIDDEN if is_secret else redacted_tree(value)


def redacted_url(url: str) -> str:
    """Returns an address without its password, also one that is written wrongly; the user is left."""
    begin = url.find("://") + 3
    at = url.rfind("@")
    if begin > 2 and at > begin and (colon := url.find(":", begin, at)) >= 0:
        url = f"{url[: colon + 1]}{HIDDEN}{url[at:]}"
    return _QUERY.sub(lambda found: found[0].removesuffix(found["value"]) + HIDDEN, url)


def redacted_words(words: Sequence[str]) -> tuple[str, ...]:
    """Returns a command line's words without secrets."""
    return tuple(shown for shown, _ in _examined(words))


def shown_command(words: Sequence[str]) -> str:
    """Returns a command line without secrets, as it would be written for a shell; what is hidden needs no quotes."""
    return " ".join(word if _NO_QUOTES.fullmatch(word) else shlex.quote(word) for word in redacted_words(words))


def secrets_in_words(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the secrets that a command line's words hold."""
    return tuple(secret for _, secrets in _examined(words) for secret in secrets)


def secrets_in_url(url: str) -> tuple[str, ...]:
    """Returns the passwords that an address holds; an address that may be read in several ways gives all readings."""
    found = [match["value"] for match in _QUERY.finditer(url)]
    begin = max(url.find("://") + 3, 0 if "://" not in url else 3)
    for at in {url.find("@", begin), url.rfind("@")}:
        if at > begin and (colon := url.find(":", begin, at)) >= 0:
            found.append(url[colon + 1 : at])
    return tuple(secret for secret in found if secret)


def _examined(words: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each word as it may be shown, and the secrets in it."""
    before = ""
    for word in words:
        if _OPTION.fullmatch(before) and not word.startswith("--"):
            yield HIDDEN, (word,)
        elif before in _USER_OPTIONS and ":" in word:
            user, _, password = word.partition(":")
            yield f"{user}:{HIDDEN}", (password,)
        else:
            yield _examined_word(word)
        before = word


def _examined_word(word: str) -> tuple[str, tuple[str, ...]]:
    secrets: tuple[str, ...] = ()
    shown = word
    if assigned := _ASSIGNED.fullmatch(word):
        # "DB_PASSWORD=x" and "--token=x" end with their value; an address ends it at "&".
        value = assigned["value"]
        ends = value.find("&") if "://" in assigned["name"] else -1
        secret = value if ends < 0 else value[:ends]
        secrets, shown = (secret,), assigned["name"] + HIDDEN + value[len(secret) :]
    if "://" in shown:
        return redacted(redacted_url(shown)), (*secrets, *secrets_in_url(shown))
    if "@" in shown and ":" in shown[: shown.rfind("@")]:
        # user:password@host
        head, _, password = shown[: shown.rfind("@")].partition(":")
        return f"{head}:{HIDDEN}{shown[shown.rfind('@') :]}", (*secrets, password)
    return redacted(shown), (*secrets, *_shaped(shown))


def _shaped(word: str) -> tuple[str, ...]:
    """Returns the secrets in a word that is a text of its own, such as a shell's script."""
    return tuple(found[0].removeprefix(found["name"]).strip("\"'") for found in _NAMED.finditer(word))


def _spelled(secret: str) -> str:
    """Returns the pattern of a secret whose characters may be percent-encoded, or escaped as in JSON or Python."""
    body = "".join(_character(character) for character in secret)
    if len(secret) >= ANYWHERE or not (secret.isascii() and secret.isalnum()):
        return body
    # Behind "%3A" or "\n" a word begins, though a letter stands before it.
    begin = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[abfnrtv]))"
    return f"{begin}{body}(?![A-Za-z0-9])"


def _character(character: str) -> str:
    encoded = "".join(
        f"%{_either_case(byte >> 4)}{_either_case(byte & 15)}" for byte in character.encode("utf-8", "surrogatepass")
    )
    escaped = (json.dumps(character)[1:-1], json.dumps(character, ensure_ascii=False)[1:-1], repr(character)[1:-1])
    spellings = dict.fromkeys((character, *escaped, "\\'" if character == "'" else character))
    longest_first = sorted(spellings, key=len, reverse=True)
    plus = r"|\+" if character == " " else ""
    return f"(?:{'|'.join(re.escape(spelling) for spelling in longest_first)}|{encoded}{plus})"


def _either_case(nibble: int) -> str:
    digit = f"{nibble:x}"
    return digit if digit.isdigit() else f"[{digit}{digit.upper()}]"

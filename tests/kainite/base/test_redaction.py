"""Redaction: what is known is hidden in every spelling, what has the shape of a secret is hidden unknown."""

from __future__ import annotations

import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kainite.base.redaction import (
    HIDDEN,
    RowValues,
    forget,
    learn,
    redacted,
    redacted_tree,
    redacted_url,
    redacted_words,
    secrets_in_url,
    secrets_in_words,
)

PRINTABLE = st.characters(min_codepoint=33, max_codepoint=0x17F, exclude_categories=("Cc", "Cs", "Zs"))
PASSWORDS = st.text(PRINTABLE, min_size=4, max_size=24).filter(lambda text: not text.startswith("***"))


def percent_encoded(text: str, which: list[bool]) -> str:
    """Encodes the characters that ``which`` names, in turns in upper and lower case."""
    shown = []
    for number, character in enumerate(text):
        encoded = "".join(f"%{byte:02X}" for byte in character.encode())
        lower = number % 2 and which[number % len(which)]
        shown.append((encoded.lower() if lower else encoded) if which[number % len(which)] else character)
    return "".join(shown)


@given(PASSWORDS, st.lists(st.booleans(), min_size=1, max_size=8))
@example("p%zz", [False])
@example("pa%41ss", [False])
@example("a\"b'c\\", [False])
def test_a_known_password_is_hidden_in_every_spelling(password: str, which: list[bool]) -> None:
    forget()
    learn([password])
    for spelling in (
        password,
        percent_encoded(password, which),
        quote(password, safe=""),
        quote_plus(password),
        json.dumps(password)[1:-1],
        json.dumps(password, ensure_ascii=False)[1:-1],
        repr(password)[1:-1],
    ):
        shown = redacted(f'invalid token: "{spelling}", see {spelling}')
        assert spelling not in shown
        assert password not in shown


@given(PASSWORDS)
def test_a_password_is_hidden_by_its_place_in_an_address(password: str) -> None:
    assume("@" not in password)
    for url in (f"postgresql://u:{password}@h:5432/d", f"postgresql://u:{quote(password, safe='')}@h/d"):
        assert redacted_url(url).startswith(f"postgresql://u:{HIDDEN}@h")


@given(PASSWORDS)
def test_the_passwords_in_an_address_are_found(password: str) -> None:
    assert password in secrets_in_url(f"postgresql://u:{password}@h/d")
    assume("&" not in password)
    assert password in secrets_in_url(f"postgresql:///d?user=u&password={password}")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("load", "--password", "geheim"), ("load", "--password", "***")),
        (("load", "--db-password=geheim", "x"), ("load", "--db-password=***", "x")),
        (("load", "DB_PASSWORD=geheim"), ("load", "DB_PASSWORD=***")),
        (("load", "api_key=geheim", "--token", "geheim"), ("load", "api_key=***", "--token", "***")),
        (("curl", "-u", "me:geheim", "https://h"), ("curl", "-u", "me:***", "https://h")),
        (("load", "postgresql://u:geheim@h/d"), ("load", "postgresql://u:***@h/d")),
        (("load", "u:geheim@h:5432/d"), ("load", "u:***@h:5432/d")),
        (("load", "https://h/x?token=geheim&y=1"), ("load", "https://h/x?token=***&y=1")),
        (("sh", "-c", "PGPASSWORD=geheim psql -p 5432"), ("sh", "-c", "PGPASSWORD=*** psql -p 5432")),
        (("load", "host=h password='geheim'"), ("load", "host=h password=***")),
        (("python", "-m", "load", "--key", "id", "-p", "5432"), ("python", "-m", "load", "--key", "id", "-p", "5432")),
    ],
)
def test_a_command_line_is_shown_without_its_secrets(words: tuple[str, ...], shown: tuple[str, ...]) -> None:
    if "PGPASSWORD" not in words[-1]:
        assert redacted_words(words) == shown
    assert "geheim" not in " ".join(redacted_words(words))
    if shown != words:
        assert any("geheim" in secret for secret in secrets_in_words(words))


NAMES = st.sampled_from(
    [
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pass",
        "secret",
        "token",
        "api-key",
        "api_key",
        "apiKey",
        "private_key",
    ]
)
BEFORE = st.sampled_from(["", "db-", "DB_", "app.", "x-", "KAINITE_TARGET_", "my_2nd_"])
WORDS = st.text("abcxyzABC0123456789._~+/!$%^*-", min_size=1, max_size=30).map(lambda text: f"geheim{text}")


@given(BEFORE, NAMES, st.booleans(), WORDS, st.sampled_from(["", "before ", "a=b ", "x: ", "\n", "("]))
def test_a_secret_is_hidden_by_its_name_in_every_shape(
    before: str, name: str, upper: bool, secret: str, text: str
) -> None:
    forget()
    named = f"{before}{name}".upper() if upper else f"{before}{name}"
    shapes = (
        f"{named}={secret}",
        f"{named} = '{secret}'",
        f'{named}="{secret}"',
        f"--{named.lower()} {secret}",
        f"--{named.lower()}={secret}",
        f"https://h/x?a=1&{named}={secret}&b=2",
        f"postgresql://h/d?{named}={secret}",
        f"host=h {named}={secret} port=1",
        json.dumps({named: secret, "b": 1}),
    )
    for shape in shapes:
        shown = redacted(f"{text}{shape} after")
        assert "geheim" not in shown
        assert shown.endswith(" after")
        assert "geheim" not in redacted(shown)
    for words in (["load", f"--{named.lower()}", secret], ["load", f"{named}={secret}"], ["env", f"{named}={secret}"]):
        assert "geheim" not in " ".join(redacted_words(words))
        assert secret in secrets_in_words(words)


@given(
    st.sampled_from(["Authorization: Bearer ", "authorization: Basic ", "X-Api-Key: ", "Proxy-Authorization: Bearer "]),
    WORDS,
)
def test_a_secret_in_a_header_is_hidden(header: str, secret: str) -> None:
    forget()
    for text in (f"{header}{secret}", f"curl -H '{header}{secret}' https://h", f'{{"h": "{header}{secret}"}}'):
        assert "geheim" not in redacted(text)
    assert "geheim" not in " ".join(redacted_words(["curl", "-H", f"{header}{secret}", "https://h"]))


@given(st.text(max_size=200))
def test_what_is_shown_once_is_shown_the_same_again(text: str) -> None:
    forget()
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "cannot open postgresql://u:geheim@h/d: refused",
        "at http://me:geheim@localhost:4566/x, again",
        'PASSWORD="geheim and more" is wrong',
        "password = geheim",
        '{"password": "geheim"}',
        "token=geheim; path=/",
        "run with --api-key geheim now",
        "Authorization: Basic geheim",
        "Authorization: Bearer geheim",
        "aws_secret_access_key=geheim",
        "DB_PASS=geheim",
        "paſſword=geheim",
        "dbpass=geheim",
        "run with --db-pass geheim now",
        "secret: geheim",
        "client_secret: geheim",
        '{"secret": "geheim"}',
        "X-Api-Key: geheim",
        "x-auth-token: geheim",
        "Set-Cookie: geheim; path=/",
        "aws_secret_access_key: geheim",
        "https://s3/x?X-Amz-Signature=geheim",
        "host=h user=u password=geheim dbname=d",
        "jdbc:postgresql://h/d?user=u&password=geheim",
        "-----BEGIN EC PRIVATE KEY-----\ngeheim\ngeheim\n-----END EC PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ngeheim",
    ],
)
def test_the_shape_of_a_secret_is_enough(text: str) -> None:
    assert "geheim" not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "password authentication failed for user u",
        "s3://bucket/prefix and http://localhost:4566",
        "the shard's token is old",
        "postgresql://u@h:5432/d",
        "max_tokens=5",
        "unexpected token: }",
        "bypass=yes compass=north",
        "pass: 3 of 5 tests",
        "3 passed, --passes 4",
        "secret://vault/path is no address",
        "the key: id, the access keys, no secrets",
        "a child of shardId-000000000001 ended",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_a_short_secret_of_letters_is_hidden_as_a_word() -> None:
    learn(["postgres", "abc"])
    assert redacted("postgresql: postgres is wrong, u%3Apostgres, abc") == (
        f"postgresql: {HIDDEN} is wrong, u%3A{HIDDEN}, abc"
    )


def test_a_text_in_a_tree_is_hidden_by_the_name_of_its_key() -> None:
    assert redacted_tree({"db": {"DB_PASS": "x", "client-secret": "", "token": None, "tokens": "3", "key": "id"}}) == {
        "db": {"DB_PASS": HIDDEN, "client-secret": "", "token": None, "tokens": "3", "key": "id"}
    }


def test_texts_are_found_in_trees() -> None:
    learn(["geheim"])
    assert redacted_tree({"a": ["x geheim", 1, None, {"geheim": True}], "b": ("geheim",)}) == {
        "a": ["x ***", 1, None, {"***": True}],
        "b": ["***"],
    }


@pytest.mark.parametrize(
    "piece", ["://", "@", "password=", "password='", 'token="\\', "--token ", "a:", "x?token=&", " ", "%41", "a"]
)
def test_the_time_is_linear(piece: str) -> None:
    learn(["geheimnis", "aaaaaaaaaaaab"])
    text = piece * (400_000 // len(piece))
    begun = time.process_time()
    redacted(text)
    assert time.process_time() - begun < 5


def test_of_rows_only_what_is_known_is_hidden() -> None:
    learn(["geheim-99"])
    row = {"token": "t-17", "password": "p", "geheim-99": ["pass=x", {"note": "a geheim-99"}], "n": 1}
    assert redacted_tree({"token": "t-17", "deltas": RowValues([{"row": row}])}) == {
        "token": HIDDEN,
        "deltas": [{"row": {"token": "t-17", "password": "p", HIDDEN: ["pass=x", {"note": f"a {HIDDEN}"}], "n": 1}}],
    }

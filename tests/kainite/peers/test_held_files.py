"""A change of the files that has settled is taken over; a broken one is told, and the old files stay in force."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from kainite.base.redaction import forget
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.peers import held_files
from kainite.peers.access_files import AccessFiles, FilesLook, look_at
from kainite.peers.certificates import Validity
from kainite.peers.held_files import DAY_S, HeldFiles, following_files
from kainite.settings import ServiceSettings
from support.certificates import DAY, Authority
from support.metric_sums import Sums
from support.waiting import until


@pytest.fixture(autouse=True)
def _secrets_forgotten() -> Iterator[None]:
    yield
    forget()


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.touch(0o600)
    path.write_text("ann:daemon:one\n")
    return path


def names(held: HeldFiles) -> list[str]:
    return list(held.now.users or ())


def test_a_change_is_taken_over_when_two_looks_find_the_same(users: Path) -> None:
    held = HeldFiles.of(ServiceSettings(secret_file=users))
    assert held.look() is None
    users.write_text("ann:daemon:one\nbob:fol")
    assert held.look() is None
    users.write_text("ann:daemon:one\nbob:follow:two\n")
    assert held.look() is None  # a writer is at work
    assert names(held) == ["ann"]
    assert held.look() is True
    assert names(held) == ["ann", "bob"]
    assert held.look() is None


def test_a_broken_file_is_told_once_and_the_old_one_holds_until_a_good_one_comes(
    users: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held = HeldFiles.of(ServiceSettings(secret_file=users))
    for broken in ("", "ann:daemon", "ann:nothing:one\n"):
        users.write_text(broken)
        caplog.clear()
        assert [held.look() for _ in range(4)] == [None, False, None, None]
        assert names(held) == ["ann"]
        assert held.trouble in held.problem(0.0)
        assert "logSecretFile" in held.trouble
        assert len(caplog.records) == 1
    users.unlink()
    assert [held.look(), held.look()] == [None, False]
    users.touch(0o600)
    users.write_text("bob:follow:two\n")
    assert [held.look(), held.look()] == [None, True]
    assert (names(held), held.trouble, held.problem(0.0)) == (["bob"], "", "")


def test_what_is_asked_for_is_read_at_once(users: Path) -> None:
    held = HeldFiles.of(ServiceSettings(secret_file=users))
    held.ask()
    assert held.look() is True
    users.write_text("bob:follow:two\n")
    held.ask()
    assert held.look() is True
    assert names(held) == ["bob"]
    assert held.look() is None


def test_a_certificate_without_its_key_waits_for_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    one, two = authority.sign("one"), authority.sign("two", 90 * DAY)
    held = HeldFiles.of(ServiceSettings(certificate_file=one.certificate, key_file=one.key))
    before = held.now
    two.certificate.replace(one.certificate)
    assert [held.look(), held.look()] == [None, False]
    assert held.now is before
    two.key.replace(one.key)
    assert [held.look(), held.look()] == [None, True]
    assert held.now.owner_tls is not before.owner_tls
    assert held.now.validity != before.validity


@pytest.mark.parametrize(
    ("days", "left", "said"),
    [
        (365, 15, ""),
        (365, 13.5, "runs out in 13.5 days"),
        (365, -2, "ran out 2.0 days ago"),
        (1, 0.5, ""),
        (1, 0.1, "runs out in 0.1 days"),
    ],
)
def test_a_certificate_that_ends_soon_is_a_problem(days: float, left: float, said: str) -> None:
    held = HeldFiles(AccessFiles(validity=Validity(0.0, days * DAY_S)))
    problem = held.problem((days - left) * DAY_S)
    assert problem.endswith(said)
    assert bool(problem) == bool(said)


async def test_readings_and_the_certificates_end_are_measured(tmp_path: Path) -> None:
    signed = Authority(tmp_path, "authority").sign("host")
    held = HeldFiles.of(ServiceSettings(certificate_file=signed.certificate, key_file=signed.key))
    sums = Sums()
    good = signed.key.read_bytes()
    assert held.now.validity is not None
    ends = held.now.validity.ends
    async with following_files(held, Meter(sums), clock=lambda: ends - 7, every=0.01):
        await until(lambda: sums.values[metric.CERTIFICATE_EXPIRY] == 7_000)
        signed.key.write_bytes(good[:50])
        await until(lambda: sums.values[metric.ACCESS_FILES_REFUSED] == 1)
        signed.key.write_bytes(good)
        await until(lambda: sums.values[metric.ACCESS_FILES_READ] == 1)
    assert held.trouble == ""


def test_nothing_named_is_nothing_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    held = HeldFiles.of(ServiceSettings())
    assert [held.look(), held.look()] == [None, None]
    assert (held.now, held.problem(1e12)) == (AccessFiles(), "")
    assert not caplog.records


def test_whoever_asks_during_a_look_is_answered_by_the_next_one(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = HeldFiles.of(ServiceSettings(secret_file=users))

    def asked_meanwhile(settings: ServiceSettings) -> FilesLook:
        held.ask()
        return look_at(settings)

    with monkeypatch.context() as patched:
        patched.setattr(held_files, "look_at", asked_meanwhile)
        assert held.look() is None
    assert held.look() is True
    assert held.look() is None

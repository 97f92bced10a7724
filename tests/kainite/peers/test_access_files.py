"""A look at the files of access notices each way in which such files are replaced, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.peers.access_files import look_at, read_access_files
from kainite.settings import ServiceSettings
from support.certificates import Authority


def test_a_rename_a_write_and_a_change_of_rights_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("ann:daemon:one\n")
    settings = ServiceSettings(secret_file=path)
    looks = [look_at(settings)]
    assert look_at(settings) == looks[0]
    path.with_suffix(".new").write_text("bob:daemon:one\n")
    path.with_suffix(".new").replace(path)
    looks.append(look_at(settings))
    path.write_text("ann:daemon:one and more\n")
    os.utime(path, (0, 0))
    looks.append(look_at(settings))
    path.chmod(0o600)
    looks.append(look_at(settings))
    path.unlink()
    looks.append(look_at(settings))
    assert len(set(looks)) == len(looks)
    assert looks[-1] == (None,)


def test_a_swap_of_the_folder_that_a_link_leads_to_is_noticed(tmp_path: Path) -> None:
    # As Kubernetes replaces a mounted secret: users leads to ..data/users, and ..data is renamed over.
    for name in ("..one", "..two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "users").write_text("ann:daemon:one\n")
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "users").symlink_to("..data/users")
    settings = ServiceSettings(secret_file=tmp_path / "users")
    before = look_at(settings)
    (tmp_path / "..new").symlink_to("..two")
    (tmp_path / "..new").replace(tmp_path / "..data")
    assert look_at(settings) != before


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    one, two = authority.sign("one"), authority.sign("two")
    files = read_access_files(ServiceSettings(certificate_file=one.certificate, key_file=one.key))
    assert files.validity is not None
    assert files.users is None
    with pytest.raises(SettingsError, match="logCertificateFile"):
        read_access_files(ServiceSettings(certificate_file=two.certificate, key_file=one.key))

"""The files by which processes know each other at the log's ports, read as a whole: certificate, key, trust, users.

A *look* tells whether one of them is another file, or has another content, than before. It names what the path leads to
in the end, so that a file that was renamed into place and Kubernetes' swap of a folder's link are both noticed.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kainite.peers.certificates import Validity, validity_of_chain
from kainite.peers.connection.introduction import Key
from kainite.peers.tls import client_context, owner_context
from kainite.peers.users import read_users
from kainite.settings import ServiceSettings

FilesLook: TypeAlias = tuple[tuple[int, int, int, int] | None, ...]
"""Device, inode, time of the last change and size of each file; None for one that is not there."""


@dataclass(frozen=True, slots=True)
class AccessFiles:
    """What the files hold.

    Attributes:
        owner_tls, client_tls: this process's TLS contexts as an owner and as a client; None means that nothing is
            encrypted.
        users: the users that may connect, in the file's order; None without a file: then HEAD has the key.
        validity: when the certificate is valid; None without one.
    """

    owner_tls: ssl.SSLContext | None = None
    client_tls: ssl.SSLContext | None = None
    users: Mapping[str, Key] | None = None
    validity: Validity | None = None


def read_access_files(settings: ServiceSettings) -> AccessFiles:
    """Reads all files.

    Raises:
        SettingsError: a file cannot be used, or the key is not the certificate's.
    """
    return AccessFiles(
        owner_context(settings),
        client_context(settings),
        read_users(settings.secret_file) if settings.secret_file is not None else None,
        _validity(settings.certificate_file),
    )


def look_at(settings: ServiceSettings) -> FilesLook:
    """Returns a look at the files; blocks."""
    named = (settings.certificate_file, settings.key_file, settings.trust_file, settings.secret_file)
    return tuple(_look(path) for path in named if path is not None)


def _look(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # Not the time of modification: a writer may set that one, and a change of rights leaves it.
    return found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size


def _validity(certificate: Path | None) -> Validity | None:
    try:
        return None if certificate is None else validity_of_chain(certificate.read_text(encoding="latin-1"))
    except OSError:  # it was read a moment ago, and is being replaced
        return None

"""The section for the log's service: where the log's owner listens, and who may connect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kainite.base.address import Address


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Where the log's owner listens, and how both sides prove who they are.

    Attributes:
        listen: where the owner listens; None: on a free port of loopback.
        advertise: where others reach the owner; None: where it listens.
        certificate_file: this side's certificate, and those between it and the authority, PEM.
        key_file: the certificate's key, PEM.
        trust_file: certificates of the authorities that sign the other side's certificate, PEM.
        secret_file: users with their secrets, a line ``user:secret`` each; a client uses the first.
        applications: how many log partitions applications may use.
        applications_listen: where applications connect; None: on a free port of ``listen``'s host.
        applications_advertise: where others reach that; None: on ``advertise``'s host, or where it listens.
    """

    listen: Address | None = None
    advertise: Address | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    trust_file: Path | None = None
    secret_file: Path | None = None
    applications: int = 0
    applications_listen: Address | None = None
    applications_advertise: Address | None = None

"""The section for the log's service: where the log's owner listens, and who may connect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kainite.base.address import Address
from kainite.settings.key import Reload, own
from kainite.settings.kinds.values import address, path, whole


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Where the log's owner listens, and how both sides prove who they are."""

    listen: Address | None = own(
        "logListen",
        address(),
        Reload.RESTART,
        "Where the log's owner listens; beyond loopback it needs a certificate, and trusted ones or secrets.",
        default=None,
        otherwise="a free port of 127.0.0.1",
    )
    advertise: Address | None = own(
        "logAdvertise",
        address(),
        Reload.RESTART,
        "Where other hosts reach the owner.",
        default=None,
        otherwise="logListen",
    )
    certificate_file: Path | None = own(
        "logCertificateFile",
        path(),
        Reload.RESTART,
        "This side's certificate (PEM); the log's connections are then encrypted. A changed file is read again.",
        default=None,
        otherwise="none",
    )
    key_file: Path | None = own(
        "logKeyFile", path(), Reload.RESTART, "The certificate's key (PEM).", default=None, otherwise="none"
    )
    trust_file: Path | None = own(
        "logTrustFile",
        path(),
        Reload.RESTART,
        "The authorities that sign the other side's certificate (PEM); the owner then asks for one.",
        default=None,
        otherwise="none",
    )
    secret_file: Path | None = own(
        "logSecretFile",
        path(),
        Reload.RESTART,
        "Who may connect and do what, a line `user:rights:secret` each; a client is the first one. Only its owner may"
        " read the file. Without it HEAD has the key. A changed file is read again.",
        default=None,
        otherwise="none",
    )
    applications: int = own(
        "logApplications",
        whole(0, 1_000, "log partitions"),
        Reload.RESTART,
        "Log partitions that `kainite log serve` offers to applications, numbered from 0.",
        default=0,
    )
    applications_listen: Address | None = own(
        "logApplicationsListen",
        address(),
        Reload.RESTART,
        "Where `kainite log serve` listens for applications; beyond loopback it needs what `logListen` needs.",
        default=None,
        otherwise="a free port where logListen is",
    )
    applications_advertise: Address | None = own(
        "logApplicationsAdvertise",
        address(),
        Reload.RESTART,
        "Where other hosts reach the owner of applications' partitions.",
        default=None,
        otherwise="logApplicationsListen, or the host of logAdvertise",
    )

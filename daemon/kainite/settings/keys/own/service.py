"""Kainite's own keys of the log's service."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import address, path, whole

SERVICE_KEYS: tuple[Key, ...] = (
    Key(
        "logListen",
        "service",
        "listen",
        address(),
        "Where the log's owner listens; beyond loopback it needs a certificate, and trusted ones or secrets.",
        default="a free port of 127.0.0.1",
    ),
    Key(
        "logAdvertise",
        "service",
        "advertise",
        address(),
        "Where other hosts reach the owner.",
        default="logListen",
    ),
    Key(
        "logCertificateFile",
        "service",
        "certificate_file",
        path(),
        "This side's certificate (PEM); the log's connections are then encrypted.",
        default="none",
    ),
    Key("logKeyFile", "service", "key_file", path(), "The certificate's key (PEM).", default="none"),
    Key(
        "logTrustFile",
        "service",
        "trust_file",
        path(),
        "The authorities that sign the other side's certificate (PEM); the owner then asks for one.",
        default="none",
    ),
    Key(
        "logSecretFile",
        "service",
        "secret_file",
        path(),
        "Who may connect, a line `user:secret` each; a client uses the first. Only the file's owner may read it.",
        default="none",
    ),
    Key(
        "logApplications",
        "service",
        "applications",
        whole(0, 1_000, "log partitions"),
        "Log partitions that `kainite log serve` offers to applications, numbered from 0.",
    ),
)

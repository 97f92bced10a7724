"""TLS for both sides of the log's service, from the files that the settings name.

==================  ==========================================  ==============================================
file                at the owner                                at a client
==================  ==========================================  ==============================================
certificate, key    the owner's certificate and key; without    the client's certificate and key, if the owner
                    them nothing is encrypted                   asks for a certificate
trust               clients must show a certificate that one    one of these authorities must have signed the
                    of these authorities has signed             owner's certificate; without the file, one of
                                                                the host's authorities
==================  ==========================================  ==============================================
"""

from __future__ import annotations

import ssl
from pathlib import Path

from kainite.base.errors import SettingsError
from kainite.settings import ServiceSettings


def owner_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Returns the owner's side of TLS; None where no certificate is set.

    Raises:
        SettingsError: a file that the settings name cannot be used.
    """
    if settings.certificate_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _prepare(context, settings)
    if settings.trust_file is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Returns a client's side of TLS; None where neither a certificate nor an authority is set.

    Raises:
        SettingsError: a file that the settings name cannot be used.
    """
    if settings.certificate_file is None and settings.trust_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _prepare(context, settings)
    if settings.trust_file is None:
        context.load_default_certs()
    return context


def _prepare(context: ssl.SSLContext, settings: ServiceSettings) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.certificate_file is not None and settings.key_file is not None:
        try:
            context.load_cert_chain(settings.certificate_file, settings.key_file, password=_no_password)
        except OSError as error:
            files = f"logCertificateFile {settings.certificate_file}, logKeyFile {settings.key_file}"
            raise SettingsError(f"{files}: {_said(error)}") from error
    if settings.trust_file is not None:
        _trust(context, settings.trust_file)


def _trust(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(path)
    except OSError as error:
        raise SettingsError(f"logTrustFile {path}: {_said(error)}") from error


def _no_password() -> str:
    """Stands in for the prompt at which a key with a password would make the process wait."""
    return ""


def _said(error: OSError) -> str:
    return error.strerror or (error.reason if isinstance(error, ssl.SSLError) else "") or str(error)

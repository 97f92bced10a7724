"""Signs POST requests to one address by AWS's Signature Version 4, as botocore's signer does. No I/O.

botocore works out anew for each request what is the same in all of them: the path, the names of the headers, and the
key of the day. That is a third of the processor time of a small call. Nothing is signed here for an address before both
were seen to sign one request alike (:meth:`kainite.aws.repeated_calls.Pattern.of`).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials

ALGORITHM: Final = "AWS4-HMAC-SHA256"
MOMENT: Final = "%Y%m%dT%H%M%SZ"
"""The format of the header ``X-Amz-Date``."""

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class SigningScope:
    """What signatures are made for.

    Attributes:
        path: the path of the requests, which have no query.
        region, service: the region and the service by their names in signatures.
    """

    path: str
    region: str
    service: str

    def authorization(
        self, headers: Mapping[str, str], body: bytes, moment: str, credentials: ReadOnlyCredentials
    ) -> str:
        """Returns the header ``Authorization`` of a request.

        Args:
            headers: the headers to sign, by their names in lower case, ``host`` and ``x-amz-date`` among them.
            body: the request's body.
            moment: the value of ``x-amz-date``.
            credentials: the credentials of whoever calls.
        """
        names = sorted(headers)
        signed = ";".join(names)
        lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in names)
        canonical = f"POST\n{self.path}\n\n{lines}\n{signed}\n{sha256(body).hexdigest()}"
        scope = f"{moment[:8]}/{self.region}/{self.service}/aws4_request"
        to_sign = f"{ALGORITHM}\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        key = _signing_key(credentials.secret_key, moment[:8], self.region, self.service)
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        return f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={signed}, Signature={signature}"


def host_of(url: str) -> str:
    """Returns the header ``Host`` of requests to ``url``, with the port where it is not the scheme's own."""
    at = urlsplit(url)
    host = f"[{at.hostname}]" if ":" in (at.hostname or "") else at.hostname or ""
    return host if at.port in (None, _PORTS.get(at.scheme)) else f"{host}:{at.port}"


@lru_cache(maxsize=16)
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    """Returns the key of one day."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key

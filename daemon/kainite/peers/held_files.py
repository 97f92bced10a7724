"""Holds what the files of access say, and reads them again when they change or when SIGHUP asks for it.

=========  =================================================  ======================================================
state      a look finds                                       next
=========  =================================================  ======================================================
steady     the files as they were read, or refused            steady
steady     other files                                        settling: a writer may be at work, or the key to a
                                                              certificate not be there yet
settling   yet other files                                    settling
settling   the same files as the look before                  they are read: steady
any        SIGHUP has asked                                   they are read at once: steady
=========  =================================================  ======================================================

Invariant: :attr:`HeldFiles.now` is always the whole of what one reading found. Files that change while they are read
leave it as it is, as do files that cannot be used: then the old ones hold, which is logged, counted and told as a
problem of health.

What follows from new files: who connects from then on is judged by them. A connection lives on with the certificates
that it began with. A connection whose user is gone from the file, or has another secret or other rights, is closed
within a second (:mod:`kainite.peers.server`). Nothing is stored: a process that dies reads the files when it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Final, NoReturn

from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.observe.meter import Meter
from kainite.observe.metric import ACCESS_FILES_READ, ACCESS_FILES_REFUSED, CERTIFICATE_EXPIRY
from kainite.peers.access_files import AccessFiles, look_at, read_access_files
from kainite.peers.certificates import Validity
from kainite.settings import ServiceSettings

_logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
"""Seconds between two looks at the files."""

TOLD_EVERY: Final = 15
"""So many looks are between two observations of the metric of expiry."""

DAY_S: Final = 86_400.0

EXPIRY_DAYS: Final = 14
"""So many days before a certificate's end its expiry is a problem of health."""

SHORT_LIVED: Final = 5
"""A certificate that is valid for less than so many times EXPIRY_DAYS is a problem in the last of so many parts of that
time: certificates of a day are the rule in some places."""


class HeldFiles:
    """The files' contents in force; a thread may ask while another one looks.

    Args:
        now: what the files hold.
        settings: the settings that name the files; None where none are named.
    """

    def __init__(self, now: AccessFiles | None = None, settings: ServiceSettings | None = None) -> None:
        self.now = now or AccessFiles()
        self.trouble = ""
        """Why the files as they are now are not in force; empty when they are."""
        self._settings = settings or ServiceSettings()
        self._seen = self._settling = look_at(self._settings)
        self._asked = threading.Event()

    @classmethod
    def of(cls, settings: ServiceSettings) -> HeldFiles:
        """Reads the files for the first time.

        Raises:
            SettingsError: a file cannot be used.
        """
        held = cls(settings=settings)  # looks before it reads
        held.now = read_access_files(settings)
        return held

    def ask(self) -> None:
        """Asks for the files to be read at the next look, whether they seem to have changed or not."""
        self._asked.set()

    def look(self) -> bool | None:
        """Looks at the files once, blocking; returns whether they are in force now if they were read, or else None."""
        asked = self._asked.is_set()
        self._asked.clear()  # before the look: who asks during it asks for another one
        found = look_at(self._settings)
        settled = found == self._settling
        self._settling = found
        if not asked and (found == self._seen or not settled):
            return None
        return self._read()

    def problem(self, now: float) -> str:
        """Returns what a person should look at; empty when nothing is wrong.

        Args:
            now: epoch seconds.
        """
        if self.trouble:
            return f"the log's certificates and secrets are not those of the files: {self.trouble}"
        validity = self.now.validity
        if validity is None or validity.ends - now > _alarm(validity):
            return ""
        days = (validity.ends - now) / DAY_S
        when = f"runs out in {days:.1f} days" if days > 0 else f"ran out {-days:.1f} days ago"
        return f"logCertificateFile {self._settings.certificate_file} {when}"

    def _read(self) -> bool | None:
        before = self._settling
        try:
            fresh = read_access_files(self._settings)
        except SettingsError as error:
            told, self.trouble = self.trouble, str(error)
            if told != self.trouble:
                event(_logger, logging.ERROR, "certificates and secrets not read again: the old ones hold", error=error)
            self._seen = before
            return False
        self._settling = look_at(self._settings)
        if self._settling != before:  # written while they were read: the next looks tell
            return None
        self.now, self._seen, self.trouble = fresh, before, ""
        event(_logger, logging.INFO, "certificates and secrets read again", users=len(fresh.users or ()))
        return True


@contextlib.asynccontextmanager
async def following_files(
    held: HeldFiles, meter: Meter, clock: Callable[[], float] = time.time, every: float = LOOK_EVERY_S
) -> AsyncIterator[None]:
    """Looks at the files again and again while entered, and reads them when they have changed.

    Args:
        held: holds what the files say.
        meter: counts readings, and is told when the certificate ends.
        clock: returns epoch seconds.
        every: seconds between two looks.
    """
    following = asyncio.create_task(_follow(held, meter, clock, every), name="certificates and secrets")
    try:
        yield
    finally:
        following.cancel()


async def _follow(held: HeldFiles, meter: Meter, clock: Callable[[], float], every: float) -> NoReturn:
    looks = 0
    while True:
        if looks % TOLD_EVERY == 0 and (validity := held.now.validity) is not None:
            meter.observe(CERTIFICATE_EXPIRY, (validity.ends - clock()) * 1000)
        looks += 1
        await asyncio.sleep(every)
        in_force = await asyncio.to_thread(held.look)
        if in_force is not None:
            meter.observe(ACCESS_FILES_READ if in_force else ACCESS_FILES_REFUSED)
            looks = 0


def _alarm(validity: Validity) -> float:
    """Returns how many seconds before its end a certificate's expiry is a problem."""
    return min(EXPIRY_DAYS * DAY_S, (validity.ends - validity.begins) / SHORT_LIVED)

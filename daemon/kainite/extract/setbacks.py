"""Decides after each run or cycle of the extractor that is no success: what is said, and how long the pause is.

A *failure* counts: too many in a row end the extraction. A program that ends with the status *try later* (75) says that
its source is away, which is nobody's failure: such an end counts against nothing, however often it comes. It is told
once, and then once a minute.

========  ========================  ====================================================================================
state     event                     then
========  ========================  ====================================================================================
well      a failure                 failing: the failures in a row are counted from 1
well      try later                 away: told, and the pauses grow from the shortest
failing   try later                 away, with as many failures as before: an absence makes up for none
away      a failure                 failing, with one failure more than before the absence
any       an answer, a whole run    well
========  ========================  ====================================================================================

A crash forgets the state, which costs some more tries and a line.
"""

from __future__ import annotations

import logging

from kainite.base import service_manager
from kainite.base.errors import ChildError, ChildTryLaterError
from kainite.base.logs import event
from kainite.base.outage import OutageNotes
from kainite.base.retry import Backoff
from kainite.extract.patience import Patience
from kainite.extract.progress import ExtractionProgress
from kainite.extract.status import ExtractStatus

logger = logging.getLogger(__name__)

_SOURCE = "the extractor's source"


class Setbacks:
    """Takes each failure and each success of the extractor's program.

    Args:
        patience: counts the failures.
        away: the pauses while the source is away.
        status, progress: show failures and absences.
        well: what the service manager is told when a source that was away is back.
    """

    def __init__(
        self, patience: Patience, away: Backoff, status: ExtractStatus, progress: ExtractionProgress, well: str = ""
    ) -> None:
        self._patience = patience
        self._backoff = away
        self._status = status
        self._progress = progress
        self._well = well
        self._times_away = 0
        self._notes = OutageNotes(_SOURCE)

    def pause_after(self, error: ChildError, *, cyclic: bool) -> float:
        """Notes that the program did not succeed; returns the seconds to wait before the next try.

        Args:
            error: how the program ended.
            cyclic: whether the program is asked for cycles, and will be asked for the same one.

        Raises:
            SourceError: there were too many failures in a row.
        """
        if isinstance(error, ChildTryLaterError):
            return self._later(error)
        seconds = self._patience.failed(error)
        self._be_back()
        again = "cycle failed: the same is asked again" if cyclic else "extractor failed: it is started again"
        event(logger, logging.WARNING, again, error=error, pause=seconds)
        self._status.failed(str(error))
        self._progress.say("failed", error=str(error), pause=seconds)
        return seconds

    def succeeded(self) -> None:
        """Notes that the program answered, or ran to its end: the counts begin anew."""
        self._patience.succeeded()
        self._be_back()

    def _later(self, error: ChildTryLaterError) -> float:
        self._times_away += 1
        seconds = self._backoff.after(self._times_away)
        self._notes(error, self._times_away, seconds)
        self._status.away(str(error))
        self._progress.say("away", error=str(error), pause=seconds)
        return seconds

    def _be_back(self) -> None:
        if self._times_away:
            self._times_away, self._notes = 0, OutageNotes(_SOURCE)
            service_manager.tell(service_manager.status(self._well))

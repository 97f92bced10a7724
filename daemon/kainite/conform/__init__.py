"""``kainite conform``: tells whether a record processor implements the protocol.

Kainite plays the daemon against real runs of the author's command, one child a case, and says in the author's words
what the child did wrong, with the exchange that shows it. The dialects are the daemon's own state machines. So a child
that passes here is one that the daemon understands, and no rule of the protocol is written twice.

Begin reading with :func:`kainite.conform.runner.run`, which runs all cases.

================================  ==================================================================
:mod:`~kainite.conform.cases`     what is tried: cases as data, and the records that they send
:mod:`~kainite.conform.exchange`  one run of the command: requests, answers, checkpoints, transcript
:mod:`~kainite.conform.report`    judges what happened, and writes rows, JSON and JUnit's XML
================================  ==================================================================

The package imports the rooms child, kinesis, leases, uow and those below them. The command line and tests import from
it what ``__all__`` names.
"""

from kainite.conform.report.findings import CaseResult, CaseVerdict, ConformReport, Finding
from kainite.conform.runner import ConformOptions, run

__all__ = ["CaseResult", "CaseVerdict", "ConformOptions", "ConformReport", "Finding", "run"]

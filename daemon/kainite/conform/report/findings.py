"""The findings about a record processor. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kainite.conform.exchange.transcript import printable
from kainite.settings import ChildProtocol


class CaseVerdict(IntEnum):
    """The verdict on a case. Of the verdicts of several findings the greatest counts."""

    SKIPPED = 0  # not tried: a case that this case builds on failed
    PASS = 1
    NOTE = 2  # allowed, and worth knowing
    SLOW = 3
    FAIL = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; a remark on what is well has the verdict PASS.

    Attributes:
        verdict: the finding's weight.
        text: says what was found.
        once: whether the finding is about the child rather than the case, and is reported in the first case only.
    """

    verdict: CaseVerdict
    text: str
    once: bool = False


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case.

    Attributes:
        name, title: the case's name and title.
        findings: the findings, in the order in which they were made.
        slowest: the longest time that the child took for an answer, seconds; None when it gave no answer.
        took: how long the whole case took, seconds.
        exchange: the transcript, a line each; empty unless the case failed.
    """

    name: str
    title: str
    findings: tuple[Finding, ...]
    slowest: float | None = None
    took: float = 0.0
    exchange: tuple[str, ...] = ()

    @property
    def verdict(self) -> CaseVerdict:
        return max((finding.verdict for finding in self.findings), default=CaseVerdict.PASS)

    @property
    def text(self) -> str:
        """Returns each finding with the case's verdict once; for a case that passed, the first remark."""
        texts = [finding.text for finding in self.findings if finding.verdict is self.verdict]
        return printable("; ".join(dict.fromkeys(texts if self.verdict > CaseVerdict.PASS else texts[:1])))


@dataclass(frozen=True, slots=True)
class ConformReport:
    """The results of all cases of one command."""

    command: tuple[str, ...]
    dialect: ChildProtocol
    results: tuple[CaseResult, ...]

    def count(self, verdict: CaseVerdict) -> int:
        return sum(result.verdict is verdict for result in self.results)

    def ok(self, *, strict: bool = False) -> bool:
        """Tells whether no case failed; with ``strict``, whether every case passed without a note."""
        return all(result.verdict <= (CaseVerdict.PASS if strict else CaseVerdict.SLOW) for result in self.results)

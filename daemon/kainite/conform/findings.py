"""What is found out about a record processor. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kainite.conform.transcript import printable
from kainite.settings import ChildProtocol


class Verdict(IntEnum):
    """How a case went; of several findings the greatest counts."""

    SKIPPED = 0  # a case that it builds on failed
    PASS = 1
    NOTE = 2  # allowed, and worth knowing
    SLOW = 3
    FAIL = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found; a remark on what is well has the verdict PASS.

    ``once``: it is about the child rather than the case, and said in the first case that finds it.
    """

    verdict: Verdict
    text: str
    once: bool = False


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case went.

    Attributes:
        name, title: the case's.
        findings: in the order in which they were made.
        slowest: the longest that the child took for an answer, seconds; None when it gave none.
        took: the whole case, seconds.
        exchange: what was said, a line each; empty unless something failed.
    """

    name: str
    title: str
    findings: tuple[Finding, ...]
    slowest: float | None = None
    took: float = 0.0
    exchange: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return max((finding.verdict for finding in self.findings), default=Verdict.PASS)

    @property
    def text(self) -> str:
        """The findings that count, without saying one twice; of what is well, the first remark."""
        texts = [finding.text for finding in self.findings if finding.verdict is self.verdict]
        return printable("; ".join(dict.fromkeys(texts if self.verdict > Verdict.PASS else texts[:1])))


@dataclass(frozen=True, slots=True)
class Report:
    """All cases of one command."""

    command: tuple[str, ...]
    dialect: ChildProtocol
    results: tuple[CaseResult, ...]

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict is verdict for result in self.results)

    def ok(self, *, strict: bool = False) -> bool:
        """No case failed; ``strict``: and none is slow or has a note."""
        return all(result.verdict <= (Verdict.PASS if strict else Verdict.SLOW) for result in self.results)

"""Admits the lines that a child emits: parses, checks and gathers them into fragments of units of work.

A line that is no delta fails its unit, never the shard, and is never dropped: it becomes a
:class:`~kainite.uow.fragment.Reject` on the unit's fragment. A line that cannot be parsed is
searched for the names of units, all of which get the reject. When the line has no such name, the reject goes to
a unit that the caller names, complete in itself, so that it is listed among the failed units; so do records that were
never processed (:mod:`kainite.uow.unprocessed`).

A delta that does not fit the target's catalogue is no reject: it is kept as it was emitted, and is reported among the
fragment's misfits (:mod:`kainite.uow.signing`). The caller may read the catalogue again, and have everything
judged anew (:meth:`Admission.judged_anew`), before it takes the fragments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
import orjson

from kainite.base.errors import DeltaError
from kainite.uow import exact_json
from kainite.uow.delta import MAX_UOW_LENGTH, Json, UnitEnd, commit_time, is_end, parse_delta, parse_end, uow_of
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import Identity, identity_of_emitted
from kainite.uow.long_numbers import unmarked
from kainite.uow.packing import Piece, pack_items
from kainite.uow.signing import SignedDeltas, Signing
from kainite.uow.unprocessed import Unprocessed

_UOW = re.compile(rb'"uow"\s*:\s*("(?:[^"\\\x00-\x1f]|\\.)*")')

MAX_REJECTS = 20
"""Most rejects that a fragment lists one by one."""

# orjson parses deeper JSON than it serializes (254 levels).
_MAX_DEPTH = 200


class Admission:
    """Collects the fragments of one append.

    States: empty, or holding what was fed since the last :meth:`take`. Nothing in it is durable;
    after a crash the child gets the same records again. Of a delta it holds the bytes, as they came and as the log will
    have them, and no objects: thousands of deltas in a call took longer to be kept, and to be let go, than to be read.

    Args:
        signing: the rules by which deltas are judged and signed.
    """

    def __init__(self, signing: Signing) -> None:
        self._signing = signing
        self._units: dict[str, _Unit] = {}
        self._unprocessed = Unprocessed()
        self._lines: list[bytes] = []  # what was fed since the last take

    def feed(self, line: bytes) -> None:
        """Takes the bytes of one ``emit`` line; whatever is wrong with them becomes a reject."""
        self._lines.append(line)
        try:
            action, digits = exact_json.loads_marked(line)
        except ValueError as error:
            self._salvage(f"invalid JSON: {error}", line)
            return
        deltas = action.get("deltas") if isinstance(action, dict) else None
        if not isinstance(deltas, list):
            self._salvage("'deltas' must be an array", line)
            return
        # A delta has four brackets of its own; only values can nest further.
        if line.count(b"[") + line.count(b"{") > 4 * len(deltas) + _MAX_DEPTH and _too_deep(action, _MAX_DEPTH):
            self._salvage(f"values nested deeper than {_MAX_DEPTH} levels", line)
            return
        for item in deltas:
            self._admit(item, digits=digits)

    @property
    def signing(self) -> Signing:
        """Returns the rules under which everything fed since the last take was judged."""
        return self._signing

    @property
    def misfits(self) -> bool:
        """Tells whether a delta fed since the last take does not fit the catalogue."""
        return any(unit.signed.misfits for unit in self._units.values())

    def judged_anew(self, signing: Signing) -> Judgement:
        """Returns everything fed since the last take, judged under other rules; may run on a thread."""
        again = Admission(signing)
        for line in self._lines:
            again.feed(line)
        return Judgement(signing, again._units)

    def adopt(self, judgement: Judgement) -> None:
        """Replaces all judgements; nothing was fed or taken since they were made. Their rules hold from now on."""
        self._units, self._signing = judgement.units, judgement.signing

    def reject(self, uow: str, cause: str, text: str) -> None:
        """Takes records that were never processed, and the name of the failed unit that they become."""
        self._unprocessed.add(uow, cause, text)

    def take(self, anonymous: str, arrived_ms: int | None = None) -> tuple[Fragment, ...]:
        """Returns what was fed since the last take, a fragment for each unit in order of first appearance.

        Args:
            anonymous: name for the unit that gets the lines without a unit's name;
                the same name whenever the same records are processed again.
            arrived_ms: when the last of the records arrived, as :class:`Fragment` has it.
        """
        pieces = pack_items([unit.signed.items for unit in self._units.values()])
        fragments = [
            unit.fragment(name, self._signing, piece, arrived_ms)
            for (name, unit), piece in zip(self._units.items(), pieces, strict=True)
        ]
        fragments += self._unprocessed.fragments(anonymous)
        self.drop()
        return tuple(fragments)

    def drop(self) -> None:
        """Forgets what was fed since the last take."""
        self._units, self._unprocessed, self._lines = {}, Unprocessed(), []

    def _admit(self, item: Json, *, digits: bool) -> None:
        uow = item.get("uow") if type(item) is dict else None
        unit = self._units.get(uow) if type(uow) is str else None
        if unit is None:
            try:
                unit = self._unit(uow_of(item))
            except DeltaError as error:
                self._unprocessed.add_line(str(error), _shown(item))
                return
        try:
            if is_end(item):
                end, time = parse_end(item), commit_time(item)
                unit.tells(time)
                unit.ends.append(end)
                return
            time = _commit_time(item) if "time" in item else None
            if digits:
                item = unmarked(item)
            self._signing.judge(item, unit.signed)
        except DeltaError as error:
            unit.rejects.add(Reject(str(error), _shown(item)))
            return
        unit.identities.append(identity_of_emitted(item))
        if time is not None:
            unit.tells(time)

    def _salvage(self, cause: str, line: bytes) -> None:
        reject = Reject(cause, line.decode(errors="replace")[: Reject.MAX_LINE])
        names = _unit_names(line)
        for name in names:
            self._unit(name).rejects.add(reject)
        if not names:
            self._unprocessed.add_line(reject.cause, reject.line)

    def _unit(self, name: str) -> _Unit:
        unit = self._units.get(name)
        if unit is None:
            unit = self._units[name] = _Unit()
        return unit


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was fed to an admission, by unit, as judged under one catalogue."""

    signing: Signing
    units: dict[str, _Unit]


class _Rejects(msgspec.Struct, gc=False):
    """The first rejects of a fragment, and the number of the others: a list of all could fill the log's memory."""

    kept: list[Reject] = []
    more: int = 0

    def add(self, reject: Reject) -> None:
        if len(self.kept) < MAX_REJECTS:
            self.kept.append(reject)
        else:
            self.more += 1

    def told(self) -> tuple[Reject, ...]:
        return (*self.kept, *((Reject(f"and {self.more} more", ""),) if self.more else ()))


class _Unit(msgspec.Struct, gc=False):
    """A fragment while it grows."""

    identities: list[Identity] = []
    signed: SignedDeltas = msgspec.field(default_factory=SignedDeltas)
    ends: list[UnitEnd] = []
    rejects: _Rejects = msgspec.field(default_factory=_Rejects)
    time: int | None = None

    def tells(self, time: int | None) -> None:
        """Takes in a commit time."""
        if time is not None:
            self.time = time if self.time is None else max(self.time, time)

    def fragment(self, uow: str, signing: Signing, piece: Piece | None, arrived_ms: int | None) -> Fragment:
        signed = self.signed
        scheme = signing.scheme if signed.items else None
        return Fragment(
            uow=uow,
            touched=signed.touched(scheme.id if scheme else None),
            ends=tuple(self.ends),
            rejects=self.rejects.told() if self.rejects.kept else (),
            identities=tuple(self.identities),
            misfits=_misfits(signed) if signed.misfits else (),
            scheme=scheme,
            time=self.time,
            piece=piece,
            arrived_ms=arrived_ms,
        )


def _misfits(signed: SignedDeltas) -> tuple[Reject, ...]:
    misfits = _Rejects()
    for delta, cause in signed.misfits:
        misfits.add(Reject(cause, _shown(delta.to_json())))
    return misfits.told()


def _commit_time(item: Json) -> int | None:
    try:
        return commit_time(item)
    except DeltaError:
        parse_delta(item)  # what else is wrong with it is told first
        raise


def _unit_names(line: bytes) -> list[str]:
    """Returns the units that a broken line names, each once; a broken name counts for none."""
    names: dict[str, None] = {}
    for quoted in _UOW.findall(line):
        try:
            name = orjson.loads(quoted)
        except ValueError:
            continue
        if 0 < len(name) <= MAX_UOW_LENGTH:
            names[name] = None
    return list(names)


def _too_deep(value: Json, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_too_deep(item, levels - 1) for item in inner)


def _shown(item: Json) -> str:
    return orjson.dumps(item).decode()[: Reject.MAX_LINE]

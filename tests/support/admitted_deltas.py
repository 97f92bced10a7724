"""What the daemon makes of the lines that a record processor emits."""

from __future__ import annotations

import json
from typing import Any

from kainite.uow.admission import Admission
from kainite.uow.fragment import Fragment
from kainite.uow.signing import Signing


def admitted(emitted: list[dict[str, Any]]) -> tuple[Fragment, ...]:
    """Returns what the daemon makes of the emitted lines."""
    admission = Admission(Signing(None))
    admission.feed(json.dumps({"action": "emit", "deltas": emitted}).encode())
    return admission.take("anonymous")

"""KCL's keys that have an effect here, with KCL's meaning (docs/kcl.md, *Settings*)."""

from __future__ import annotations

from kainite.settings.keys.kcl import aws as kcl_aws
from kainite.settings.keys.kcl import leases as kcl_leases
from kainite.settings.keys.kcl import stream as kcl_stream
from kainite.settings.keys.kcl import worker as kcl_worker
from kainite.settings.keys.key import Key

KCL_KEYS: tuple[Key, ...] = kcl_aws.KEYS + kcl_stream.KEYS + kcl_leases.KEYS + kcl_worker.KEYS

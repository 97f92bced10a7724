"""KCL's keys that have an effect here, with KCL's meaning."""

from __future__ import annotations

from kainite.settings.keys import kcl_aws, kcl_leases, kcl_stream, kcl_worker
from kainite.settings.keys.key import Key

KCL_KEYS: tuple[Key, ...] = kcl_aws.KEYS + kcl_stream.KEYS + kcl_leases.KEYS + kcl_worker.KEYS

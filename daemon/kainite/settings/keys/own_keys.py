"""Kainite's own keys, in the order in which ``--check`` and docs/properties.md show them."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.keys.own.apply import APPLY_KEYS
from kainite.settings.keys.own.extract import EXTRACT_KEYS
from kainite.settings.keys.own.fleet import FLEET_KEYS
from kainite.settings.keys.own.log import LOG_KEYS, UOW_KEYS
from kainite.settings.keys.own.markers import MARKERS_KEYS
from kainite.settings.keys.own.service import SERVICE_KEYS
from kainite.settings.keys.own.worker import AWS_KEYS, METRICS_KEYS, WORKER_KEYS

OWN_KEYS: tuple[Key, ...] = (
    *AWS_KEYS,
    *WORKER_KEYS,
    *MARKERS_KEYS,
    *METRICS_KEYS,
    *LOG_KEYS,
    *SERVICE_KEYS,
    *UOW_KEYS,
    *APPLY_KEYS,
    *EXTRACT_KEYS,
    *FLEET_KEYS,
)

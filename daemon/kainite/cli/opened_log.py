"""The log that a command's settings name."""

from __future__ import annotations

from kainite.aws.clients import client
from kainite.settings import Settings
from kainite.store.dynamodb import DynamoDBStore


def opened_log(settings: Settings) -> tuple[DynamoDBStore, str]:
    """Returns the store and the partition of the settings' log."""
    return DynamoDBStore(client("dynamodb", settings.aws), settings.log.table), settings.log.partition

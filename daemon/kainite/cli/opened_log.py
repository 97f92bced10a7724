"""The log that a command's settings name."""

from __future__ import annotations

from kainite.aws.clients import client
from kainite.settings import Settings
from kainite.store.dynamodb import DynamoDBStore


def opened_log(settings: Settings, *, token: bool = False) -> tuple[DynamoDBStore, str]:
    """Returns the store and the partition of the settings' log.

    Args:
        settings: the command's.
        token: whether the command needs the token of HEAD, because it connects to the log's owner.
    """
    store = DynamoDBStore(client("dynamodb", settings.aws), settings.log.table, token=token)
    return store, settings.log.partition

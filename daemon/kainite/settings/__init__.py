"""Settings: one ``.properties`` file describes an application, and each part takes only its own section.

The daemon, the log's commands and the apply job all read the same file. Its grammar is
``java.util.Properties``; its keys are KCL's, and Kainite's own beside them. The environment and the
command line win over it. Begin reading with :mod:`~kainite.settings.settings` and
:mod:`~kainite.settings.loading`. The settings import only :mod:`kainite.base`.

=========================================  =======================================================
:mod:`~kainite.settings.settings`          all settings of one application
:mod:`~kainite.settings.sections`          the sections, each with its keys and their defaults
:mod:`~kainite.settings.key`               how a field of a section states its key
:mod:`~kainite.settings.keys`              the table of all keys
:mod:`~kainite.settings.kinds`             the kinds of values: how text becomes a value
:mod:`~kainite.settings.credentials`       chains of credentials providers
:mod:`~kainite.settings.placeholders`      the placeholders of a run instruction
:mod:`~kainite.settings.loader_command`    the command of a target that is a program
:mod:`~kainite.settings.loading`           reads and checks a file and what overrides it
:mod:`~kainite.settings.exposure`          lists what settings expose to others
=========================================  =======================================================
"""

from kainite.settings.kinds.audit_trail import S3Folder
from kainite.settings.loading.examination import Examination, examine, load
from kainite.settings.sections.apply import ApplySettings, AwsFrom, Consistency, OnFailure, TargetCommit, TargetTriggers
from kainite.settings.sections.aws import AwsSettings, ClientSettings
from kainite.settings.sections.child import ChildProtocol, ChildSettings
from kainite.settings.sections.console import ConsoleSettings, RowDisplay
from kainite.settings.sections.extract import ExtractMode, ExtractOffsets, ExtractSettings, ExtractSpread
from kainite.settings.sections.fleet import FleetSettings
from kainite.settings.sections.leases import LeaseSettings
from kainite.settings.sections.log import LogSettings
from kainite.settings.sections.markers import CheckpointAt, MarkersSettings, OnBadMessage, OnDeath, OnEmptyAnswer
from kainite.settings.sections.metrics import MetricsLevel, MetricsSettings
from kainite.settings.sections.service import ServiceSettings
from kainite.settings.sections.stream import InitialPosition, Retrieval, StreamSettings
from kainite.settings.sections.uow import Isolation, UowEnd, UowOrder, UowSettings
from kainite.settings.settings import Settings, UnknownKey

__all__ = [
    "ApplySettings",
    "AwsFrom",
    "AwsSettings",
    "CheckpointAt",
    "ChildProtocol",
    "ChildSettings",
    "ClientSettings",
    "Consistency",
    "ConsoleSettings",
    "Examination",
    "ExtractMode",
    "ExtractOffsets",
    "ExtractSettings",
    "ExtractSpread",
    "FleetSettings",
    "InitialPosition",
    "Isolation",
    "LeaseSettings",
    "LogSettings",
    "MarkersSettings",
    "MetricsLevel",
    "MetricsSettings",
    "OnBadMessage",
    "OnDeath",
    "OnEmptyAnswer",
    "OnFailure",
    "Retrieval",
    "RowDisplay",
    "S3Folder",
    "ServiceSettings",
    "Settings",
    "StreamSettings",
    "TargetCommit",
    "TargetTriggers",
    "UnknownKey",
    "UowEnd",
    "UowOrder",
    "UowSettings",
    "examine",
    "load",
]

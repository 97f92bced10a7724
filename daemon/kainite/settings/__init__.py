"""Settings: one ``.properties`` file describes an application, and each part takes only its own section.

The daemon, the log's commands and the apply job all read the same file. Its grammar is
``java.util.Properties``; its keys are KCL's, and Kainite's own beside them. The environment and the
command line win over it.

=================================================  ============================================
:mod:`~kainite.settings.sections`                  the sections and their defaults
:mod:`~kainite.settings.keys.table`                     every key that has an effect
:mod:`~kainite.settings.keys.without_effect`            KCL's keys that have none here, and why
:mod:`~kainite.settings.kinds`                     how text becomes a value
:mod:`~kainite.settings.loader_command`                    a target that is a program
:mod:`~kainite.settings.keys.marker_kinds`              the same for the ``markers`` dialect
:mod:`~kainite.settings.keys.audit_kind`                a folder, or a place on S3
:mod:`~kainite.settings.credentials`               chains of credentials providers, as text
:mod:`~kainite.settings.loading.overrides`                 the environment and the command line
:mod:`~kainite.settings.loading.file`                      reading all of it, collecting its problems
:mod:`~kainite.settings.loading.consistency`               problems that no single value shows
:mod:`~kainite.settings.loading.surprises`                 what is allowed and may surprise
:mod:`~kainite.settings.loading.reload`                    what changed in a file that is read again
=================================================  ============================================
"""

from kainite.settings.loading.file import Examination, examine, load
from kainite.settings.sections import (
    ApplySettings,
    AwsSettings,
    CheckpointAt,
    ChildProtocol,
    ChildSettings,
    ClientSettings,
    ExtractMode,
    ExtractOffsets,
    ExtractSettings,
    ExtractSpread,
    InitialPosition,
    Isolation,
    LeaseSettings,
    LogSettings,
    MarkersSettings,
    MetricsLevel,
    MetricsSettings,
    OnBadMessage,
    OnDeath,
    OnFailure,
    Retrieval,
    S3Folder,
    Settings,
    StreamSettings,
    UnknownKey,
    UowOrder,
    UowSettings,
)

__all__ = [
    "ApplySettings",
    "AwsSettings",
    "CheckpointAt",
    "ChildProtocol",
    "ChildSettings",
    "ClientSettings",
    "Examination",
    "ExtractMode",
    "ExtractOffsets",
    "ExtractSettings",
    "ExtractSpread",
    "InitialPosition",
    "Isolation",
    "LeaseSettings",
    "LogSettings",
    "MarkersSettings",
    "MetricsLevel",
    "MetricsSettings",
    "OnBadMessage",
    "OnDeath",
    "OnFailure",
    "Retrieval",
    "S3Folder",
    "Settings",
    "StreamSettings",
    "UnknownKey",
    "UowOrder",
    "UowSettings",
    "examine",
    "load",
]

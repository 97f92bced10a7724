"""Keeps what each Spark job looks up in the JVM by name.

PySpark names a class of the JVM by its last part, ``PythonRDD``, five times a job. Each time py4j asks the JVM, which
looks for it in one package after the other, through all 280 jars of Spark for each package before the right one; then
it asks whether the class has the method. For a job of one small task that is a seventh of the JVM's processor time, and
of the driver's. The answers never change while the JVM lives, so they are kept in py4j's view of the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "PythonRDD": ("readRDDFromFile", "collectAndServe"),
    "PythonUtils": ("getBroadcastThreshold",),
    "SimplePythonFunction": (),
}
"""The classes that a job of :mod:`kainite_spark.driver.runner` names, with their methods."""


def keep_names(jvm: JVMView) -> None:
    """Looks the names up once; a class that this release of Spark does not have stays as it is."""
    from py4j.java_gateway import JavaClass

    for name, methods in NAMES.items():
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            for method in methods:
                setattr(found, method, getattr(found, method))
            setattr(jvm, name, found)

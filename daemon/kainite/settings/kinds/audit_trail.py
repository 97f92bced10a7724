"""The kind of the audit trail's place: a folder, or ``s3://bucket/prefix``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kainite.settings.kinds.values import ValueKind

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(s3):", re.IGNORECASE)
# AWS, "General purpose bucket naming rules" and "Naming Amazon S3 objects" (the safe characters).
_BUCKET: Final = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()=/-]{0,900}")


@dataclass(frozen=True, slots=True)
class S3Folder:
    """A place on S3: keys begin with ``prefix`` and a slash, or with nothing where it is empty."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def folder_or_s3() -> ValueKind:
    """Returns the kind of a path, from the folder of the settings file, or of a place on S3."""
    allowed = "a folder's path, from this file's folder, or s3://bucket/prefix"

    def parse(value: str, folder: Path) -> Path | S3Folder:
        scheme = _SCHEME.match(value)
        if scheme is None:
            return (folder / value).absolute()
        if scheme[0] != "s3://":
            raise ValueError(f"must be {allowed}, not {value!r}")
        bucket, _, prefix = value.removeprefix("s3://").partition("/")
        return S3Folder(_bucket(bucket, value), _prefix(prefix))

    return ValueKind(allowed, parse)


def _bucket(name: str, value: str) -> str:
    if not name:
        raise ValueError(f"names no bucket: {value!r}; write s3://bucket/prefix")
    if not _BUCKET.fullmatch(name):
        raise ValueError(f"{name!r} is no bucket's name: 3 to 63 of a-z 0-9 . -, with a letter or digit at both ends")
    return name


def _prefix(text: str) -> str:
    prefix = text.strip("/")
    if not _PREFIX.fullmatch(prefix) or "//" in prefix:
        raise ValueError(f"{text!r} is no prefix: at most 900 of letters, digits, ! _ . * ' ( ) = - and single slashes")
    return prefix

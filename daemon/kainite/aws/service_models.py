"""Loads the descriptions of AWS's services faster than botocore does: who looks waits for the first client.

Before botocore loads a service's description, it looks for the file in the folders of all 400 services, so as to know
their names: 2,700 calls of the kernel. And it reads each description, as well as the list of all endpoints, by Python's
parser of JSON, which makes an ``OrderedDict`` of each object. This module imports botocore, so it is imported late.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
from botocore.loaders import JSONFileLoader, Loader, create_loader


class JsonFiles(JSONFileLoader):
    """botocore's reader of files, with a faster parser."""

    def load_file(self, file_path: str) -> Any:
        """Returns what stands in a file, given without its suffixes; None where there is no such file."""
        plain, packed = Path(f"{file_path}.json"), Path(f"{file_path}.json.gz")
        if plain.is_file():
            return orjson.loads(plain.read_bytes())
        return orjson.loads(gzip.decompress(packed.read_bytes())) if packed.is_file() else None


class ServiceModels(Loader):
    """botocore's loader.

    Args:
        data_path: further folders to search first, separated as in PATH; None for none.
    """

    def __init__(self, data_path: str | None) -> None:
        folders = create_loader(data_path).search_paths
        super().__init__(folders, JsonFiles(), include_default_search_paths=False)

    def list_available_services(self, type_name: str) -> list[str]:
        """Returns the names of all services, also of those that lack this type of description."""
        folders = (folder for folder in map(Path, self.search_paths) if folder.is_dir())
        return sorted({found.name for folder in folders for found in folder.iterdir()})

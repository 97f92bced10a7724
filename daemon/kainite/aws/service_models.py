"""Loads the descriptions of AWS's services without a look into the folder of each.

Before botocore loads a service's description, it looks for the file in the folders of all 400 services, so as to know
their names. These are 2,700 calls of the kernel each time a program makes its first client. This module imports
botocore, so it is imported late.
"""

from __future__ import annotations

from pathlib import Path

from botocore.loaders import Loader, create_loader


class ServiceModels(Loader):
    """botocore's loader.

    Args:
        data_path: further folders to search first, separated as in PATH; None for none.
    """

    def __init__(self, data_path: str | None) -> None:
        super().__init__(create_loader(data_path).search_paths, include_default_search_paths=False)

    def list_available_services(self, type_name: str) -> list[str]:
        """Returns the names of all services, also of those that lack this type of description."""
        folders = (folder for folder in map(Path, self.search_paths) if folder.is_dir())
        return sorted({found.name for folder in folders for found in folder.iterdir()})

"""The bundle: rows of the scoring tables, the manifest, folders and zips. No Django here."""

from scoring.bundle.container import BundleChanged, FolderSource, Source, pack, unpack
from scoring.bundle.manifest import FORMAT, MANIFEST, SCHEMA_VERSION, manifest_line

__all__ = [
    "FORMAT",
    "MANIFEST",
    "SCHEMA_VERSION",
    "BundleChanged",
    "FolderSource",
    "Source",
    "manifest_line",
    "pack",
    "unpack",
]

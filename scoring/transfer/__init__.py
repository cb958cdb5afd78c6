"""Bundles and HealthBench files, into and out of the database: all tables, all or nothing."""

from scoring.transfer.exporting import export_bundle, export_healthbench
from scoring.transfer.importing import Outcome, import_source
from scoring.transfer.sources import ImportRefused, UnreadableError, open_source

__all__ = [
    "ImportRefused",
    "Outcome",
    "UnreadableError",
    "export_bundle",
    "export_healthbench",
    "import_source",
    "open_source",
]

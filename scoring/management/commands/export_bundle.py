"""manage.py export_bundle: everything, or some collections, as files that others can read."""

from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scoring.transfer import export_bundle, export_healthbench


class Command(BaseCommand):
    """Write a bundle or a HealthBench file; the same state gives the same bytes."""

    help = (
        "Export everything, or the collections that are named, as a bundle: a folder, or a zip"
        " where PATH ends in .zip. Accounts, the audit log and calls stay here."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("path", type=Path, help="a place where nothing is yet")
        parser.add_argument(
            "--collection",
            action="append",
            default=[],
            metavar="SLUG",
            help="a collection to export; may be given more than once (default: all)",
        )
        parser.add_argument(
            "--format",
            choices=["bundle", "healthbench"],
            default="bundle",
            help="healthbench: one collection's conversations, rubrics and references as JSONL",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Export, and print what was written."""
        path, collections = options["path"], tuple(options["collection"])
        try:
            if options["format"] == "healthbench":
                if len(collections) != 1:
                    raise CommandError("HealthBench JSONL holds one collection: name --collection.")
                count = export_healthbench(path, collection=collections[0])
                self.stdout.write(f"{path}: {count:,} examples")
                return
            rows = export_bundle(path, collections=collections)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        found = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in rows.items())
        self.stdout.write(f"{path}: {found}")

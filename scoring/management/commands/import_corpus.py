"""manage.py import_corpus: a bundle or a HealthBench file into the database, all or nothing."""

import json
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from corpus.schema.faults import Fault
from scoring.transfer import ImportRefused, Outcome, UnreadableError, import_source, open_source


class Command(BaseCommand):
    """Check everything first, report every fault with its place, and write all or nothing."""

    help = (
        "Import a bundle (folder or zip) or a HealthBench JSONL file. Everything is checked first;"
        " with any fault, nothing is written. Importing the same again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("path", type=Path, help="a bundle, or a HealthBench .jsonl file")
        parser.add_argument(
            "--collection",
            default="",
            metavar="SLUG",
            help="HealthBench: the guest collection to fill (default: from the name of the file)",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="do everything, say what it did, take it back"
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import, and print what happened."""
        as_json = options["json"]
        quiet = as_json or options["verbosity"] == 0
        errors = Console(file=cast(IO[str], self.stderr._out), highlight=False)
        with Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=errors,
            transient=True,
            # A bar in a log file is noise.
            disable=quiet or not errors.is_terminal,
        ) as progress:
            task = progress.add_task("Reading", total=None)

            def on_step(step: str, table: str) -> None:
                progress.update(task, description=f"{step} {table.replace('_', ' ')}".strip())

            try:
                with open_source(
                    options["path"],
                    collection=options["collection"],
                    on_bytes=lambda count: progress.advance(task, count),
                ) as source:
                    # Every byte is read once to be checked and once to be written.
                    progress.update(task, total=2 * source.size())
                    outcome = import_source(source, dry_run=options["dry_run"], on_step=on_step)
            except UnreadableError as error:
                raise CommandError(str(error)) from error
            except ImportRefused as refused:
                progress.stop()
                self._print_faults(refused, as_json)
                count = len(refused.faults) + refused.more
                faults = "1 fault" if count == 1 else f"{count:,} faults"
                raise CommandError(
                    f"{faults} in {options['path'].name}. Nothing was imported."
                ) from None
        self._print_outcome(outcome, options["dry_run"], as_json)

    def _print_faults(self, refused: ImportRefused, as_json: bool) -> None:
        if as_json:
            faults = [fault.as_dict() for fault in refused.faults]
            report = {"imported": False, "faults": faults, "more_faults": refused.more}
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
            return
        table = Table(show_lines=False, expand=False)
        for name in ("File", "Line", "Field", "Value", "Reason"):
            table.add_column(name, overflow="fold", justify="right" if name == "Line" else "left")
        for fault in sorted(refused.faults, key=_place):
            table.add_row(*_cells(fault))
        self._console().print(table)
        if refused.more:
            self.stdout.write(f"… and {refused.more:,} more.")

    def _print_outcome(self, outcome: Outcome, dry_run: bool, as_json: bool) -> None:
        changes = {
            name: {"new": one.new, "unchanged": one.unchanged, "drafts": one.drafts}
            for name, one in outcome.changes.items()
        }
        if as_json:
            report = {"imported": not dry_run, "dry_run": dry_run, "faults": [], "tables": changes}
            self.stdout.write(json.dumps(report, indent=2))
            return
        table = Table("Table")
        table.add_column("New", justify="right")
        table.add_column("Already there", justify="right")
        for name, one in changes.items():
            if one["new"] or one["unchanged"]:
                table.add_row(name.replace("_", " "), f"{one['new']:,}", f"{one['unchanged']:,}")
        self._console().print(table)
        drafts = changes["rubrics"]["drafts"]
        if drafts:
            rubrics = "1 changed rubric is" if drafts == 1 else f"{drafts:,} changed rubrics are"
            self.stdout.write(f"{rubrics} kept as a draft, to be looked at and published.")
        if not outcome.anything:
            self.stdout.write("Everything was there already; nothing changed.")
        elif dry_run:
            self.stdout.write("Dry run: this is what an import would do. Nothing was changed.")

    def _console(self) -> Console:
        stream = cast(IO[str], self.stdout._out)
        console = Console(file=stream, highlight=False)
        # A file or a pipe gets whole lines; eighty columns would cut reasons to pieces.
        return console if console.is_terminal else Console(file=stream, highlight=False, width=200)


def _place(fault: Fault) -> tuple[str, int, str]:
    return fault.file, fault.line or 0, fault.field


def _cells(fault: Fault) -> tuple[Text, ...]:
    line = "" if fault.line is None else str(fault.line)
    return tuple(Text(one) for one in (fault.file, line, fault.field, fault.value, fault.reason))

"""Check that every label is what its log gives."""

import json
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from annotation.models import Assignment, Round
from annotation.selectors import verify_assignments


class Command(BaseCommand):
    """Replay the log of each assignment and compare; exits with 1 where something differs."""

    help = "Check that every label is what its log gives."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name a round, or check all."""
        parser.add_argument("--round", metavar="NAME", help="only this round")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check and print."""
        assignments = Assignment.objects.all()
        if options["round"]:
            if not Round.objects.filter(name=options["round"]).exists():
                raise CommandError(f"There is no round named {options['round']!r}.")
            assignments = assignments.filter(round_item__round__name=options["round"])
        count = assignments.count()
        faults = list(verify_assignments(assignments))
        if options["json"]:
            self.stdout.write(json.dumps({"assignments": count, "faults": faults}, sort_keys=True))
        elif faults:
            table = Table("assignment", "criterion", "fault", "log", "label")
            for fault in faults:
                table.add_row(
                    *(
                        str(fault[name])
                        for name in ("assignment", "criterion", "fault", "log", "label")
                    )
                )
            Console(file=cast(IO[str], self.stdout)).print(table)
        else:
            self.stdout.write(f"{count} assignments: every label is what its log gives.")
        if faults:
            differ = "label differs from its" if len(faults) == 1 else "labels differ from their"
            raise CommandError(f"{len(faults)} {differ} log.")

"""manage.py calibrate: measure a judge against clinicians' labels."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser
from rich.table import Table

from scoring.management.commands._naming import as_fault, find_judge, find_rounds
from scoring.management.commands._tables import estimate, make_console
from scoring.models import Calibration, CalibrationDecision
from scoring.services import calibrate, decide_calibration


class Command(BaseCommand):
    """Measure a judge against the test labels of rounds; approve with a reason if asked."""

    help = "Measure a judge against the test labels of rounds; opens the split if nobody has."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--judge", required=True, metavar="NAME[@VERSION]")
        parser.add_argument("--round", required=True, action="append", metavar="NAME")
        parser.add_argument("--reason", default="", help="why the test labels are looked at")
        parser.add_argument("--approve", metavar="REASON", help="approve it, for this reason")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure, print, decide."""
        judge = find_judge(options["judge"])
        try:
            calibration = calibrate(
                judge=judge,
                rounds=find_rounds(options["round"]),
                actor=None,
                reason=options["reason"],
            )
            self._show(calibration)
            if options["approve"] is not None:
                decide_calibration(
                    calibration=calibration,
                    decision=CalibrationDecision.Decision.APPROVE,
                    reason=options["approve"],
                    actor=None,
                )
                self.stdout.write(f"Calibration {calibration.number} is approved.")
        except ValidationError as error:
            raise as_fault(error) from error

    def _show(self, calibration: Calibration) -> None:
        metrics = calibration.metrics
        table = Table(
            title=f"Calibration {calibration.number} of {calibration.judge}:"
            f" {metrics['n_units']} units of {metrics['n_conversations']} test conversations"
        )
        for heading in ("", "units", "sensitivity", "specificity", "macro-F1"):
            table.add_column(heading, justify="left" if not heading else "right")
        panels = [("overall", metrics["overall"]), *metrics["dimensions"].items()]
        for name, panel in panels:
            table.add_row(
                name,
                str(panel["n_units"]),
                estimate(panel["sensitivity"]),
                estimate(panel["specificity"]),
                estimate(panel["macro_f1"]),
            )
        console = make_console(self.stdout)
        console.print(table)
        standing = metrics["standing"]
        beside = Table(title="Macro-F1 against the clinicians, pair by pair")
        beside.add_column("")
        beside.add_column("macro-F1", justify="right")
        beside.add_row(str(calibration.judge), estimate(standing["judge"]["macro_f1"]))
        for clinician in standing["clinicians"]:
            beside.add_row(clinician["annotator"], estimate(clinician["macro_f1"]))
        console.print(beside)

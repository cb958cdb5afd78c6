"""Print the agreement of a round."""

import json
from dataclasses import asdict
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from annotation.agreement import AgreementPanel, Estimate
from annotation.models import Round
from annotation.selectors import agreement_of
from annotation.wording import reason_words

COLUMNS = [
    ("Alpha", "alpha"),
    ("AC1", "ac1"),
    ("Says met", "psa"),
    ("Says not met", "nsa"),
    ("Same answer", "percent_agreement"),
    ("Met", "prevalence"),
]


class Command(BaseCommand):
    """Print the same figures as the round's agreement page."""

    help = "Print the agreement of one or more rounds."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name the rounds."""
        parser.add_argument("--round", action="append", required=True, metavar="NAME")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print."""
        rounds = {r.name: r.pk for r in Round.objects.filter(name__in=options["round"])}
        missing = [name for name in options["round"] if name not in rounds]
        if missing:
            raise CommandError(f"There is no round named {missing[0]!r}.")
        report = agreement_of(rounds.values())
        if options["json"]:
            self.stdout.write(json.dumps(asdict(report), sort_keys=True, allow_nan=False))
            return
        table = Table("Dimension", "Rated by two", *(name for name, _ in COLUMNS), "Cannot tell")
        for name, panel in [("All", report.overall), *((n, p) for _, n, p in report.dimensions)]:
            table.add_row(name, str(panel.n_pairable), *_cells(panel), _share(panel))
        console = Console(file=cast(IO[str], self.stdout))
        console.print(table)
        console.print(
            f"{report.n_annotators} annotators, {report.n_conversations} conversations, "
            f"{report.n_replies} replies. 95 % intervals over conversations; "
            f"{report.replicates} replicates, seed {report.seed}."
        )
        console.print(f"Rubrics {report.rubrics_digest[:12]}  Labels {report.labels_digest[:12]}")


def _cells(panel: AgreementPanel) -> list[str]:
    return [_cell(getattr(panel, field)) for _, field in COLUMNS]


def _cell(estimate: Estimate) -> str:
    if estimate.value is None:
        return reason_words(estimate.reason)
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"


def _share(panel: AgreementPanel) -> str:
    return "-" if panel.cannot_tell_rate is None else f"{panel.cannot_tell_rate:.1%}"

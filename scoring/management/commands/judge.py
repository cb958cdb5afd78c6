"""manage.py judge: judge all replies of a collection, in the foreground."""

import time
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from scoring import engine
from scoring.management.commands._naming import as_fault, find_collection, find_judge
from scoring.models import Run
from scoring.selectors import run_progress, unfinished_run
from scoring.services import start_run

# How long to wait while other workers hold the last items.
WAIT_SECONDS = 0.5
SHOWN_EVERY = 0.5


class Command(BaseCommand):
    """Start a run or join one that has not ended; workers elsewhere share it."""

    help = "Judge all replies of a collection; joins a run that has not ended."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--judge", required=True, metavar="NAME[@VERSION]")
        parser.add_argument("--collection", required=True, metavar="SLUG")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run to the end and say what came of it."""
        judge = find_judge(options["judge"])
        collection = find_collection(options["collection"])
        run = unfinished_run(judge, collection)
        if run is None:
            try:
                run = start_run(judge=judge, collection=collection, actor=None)
            except ValidationError as error:
                raise as_fault(error) from error
        else:
            self.stdout.write(f"Joining run {run.pk}, which has not ended.")
        outcome = self._follow(run, f"{judge} on {collection.slug}")
        run.refresh_from_db()
        progress = run_progress(run)
        if outcome == "halted":
            raise CommandError(f"Run {run.pk} is {run.get_status_display()}; it was left there.")
        self.stdout.write(
            f"Run {run.pk} is {run.get_status_display()}: {progress.done} of {progress.total}"
            f" replies judged, {progress.failed} failed."
        )
        if progress.failed:
            raise CommandError(f"The last fault: {progress.last_error}")

    def _follow(self, run: Run, title: str) -> engine.Outcome:
        worker = engine.worker_name()
        shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with shown:
            state = run_progress(run)
            bar = shown.add_task(title, total=state.total, completed=state.finished)
            while True:
                outcome = engine.work_on(run.pk, worker=worker, seconds=SHOWN_EVERY)
                self._show(shown, bar, run)
                if outcome in ("ended", "halted"):
                    return outcome
                if outcome == "elsewhere":
                    time.sleep(WAIT_SECONDS)

    def _show(self, shown: Progress, bar: TaskID, run: Run) -> None:
        # Counted in the tables: other workers' items move the bar too.
        shown.update(bar, completed=run_progress(run).finished)

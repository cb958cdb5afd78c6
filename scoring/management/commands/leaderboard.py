"""manage.py leaderboard: print the scores of a collection with their ruler."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from corpus.models import Collection
from scoring.management.commands._naming import find_collection, find_judge
from scoring.management.commands._tables import estimate, make_console, percent
from scoring.models import ScoreSet
from scoring.selectors import leaderboards, score_set_for
from scoring.services import refresh_scores


class Command(BaseCommand):
    """Print the leaderboard of each judge on a collection, or of all collections."""

    help = "Print scores with intervals, missing weight and ruler; --json for programs."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--collection", metavar="SLUG", help="default: all with scores")
        parser.add_argument("--judge", metavar="NAME[@VERSION]", help="default: all")
        parser.add_argument("--json", action="store_true", help="print JSON, one list")

    def handle(self, *args: Any, **options: Any) -> None:
        """Refresh what has changed, then print."""
        found = self._score_sets(options["collection"], options["judge"])
        if options["json"]:
            payloads = [score_set.payload for score_set in found]
            self.stdout.write(json.dumps(payloads, ensure_ascii=False, indent=2, sort_keys=True))
            return
        if not found:
            raise CommandError(
                "There are no scores yet: judge a collection first (manage.py judge)."
            )
        console = make_console(self.stdout)
        for score_set in found:
            show(console, score_set)

    def _score_sets(self, slug: str | None, judge_name: str | None) -> list[ScoreSet]:
        judge = find_judge(judge_name) if judge_name else None
        known = Collection.objects.order_by("slug")
        collections = [find_collection(slug)] if slug else list(known)
        found = []
        for collection in collections:
            if judge is None:
                for board in leaderboards(collection):
                    refresh_scores(collection=collection, judge=board.judge)
                found += leaderboards(collection)
            elif slug or score_set_for(collection, judge):
                found.append(refresh_scores(collection=collection, judge=judge))
        return found


def show(console: Console, score_set: ScoreSet) -> None:
    """Print one leaderboard: scores, dimensions, findings, ruler and limits."""
    board = score_set.payload
    judge = f"{board['judge']} v{board['judge_version']}"
    console.print(
        f"\n[bold]{escape(score_set.collection.name)}[/bold], judged by {judge}"
        f" ({'built-in baseline' if board['judge_kind'] == 'baseline' else 'language model'}),"
        f" {board['conversations']} conversations"
    )
    console.print(_standing(board), markup=False)
    console.print(_scores(board))
    console.print(_dimensions(board))
    if board["pooled_routing"]:
        found = board["pooled_routing"]["any_not_met"]
        console.print(
            "Recognition without routing, models pooled: "
            f"{estimate(found['rate'])} % of {found['denominator']:g} replies that met every"
            " recognition criterion missed a resource criterion.",
            markup=False,
            highlight=False,
        )
    console.print(
        f"Ruler {board['ruler'][:16]}. {' '.join(board['limits'])}", markup=False, highlight=False
    )


def _standing(board: dict[str, Any]) -> str:
    if board["approved"]:
        return f"Calibration {board['calibration']}, approved."
    if board["stale"]:
        why = " ".join(board["stale_reasons"])
        return f"UNAPPROVED: calibration {board['calibration']} is stale. {why}"
    return "UNAPPROVED: no approved calibration stands behind these scores."


def _scores(board: dict[str, Any]) -> Table:
    table = Table(title="Share of the required care delivered, in per cent")
    for heading, justify in (
        ("rank", "right"),
        ("respondent", "left"),
        ("score [95 %]", "right"),
        ("without routing", "right"),
        ("refused", "right"),
        ("missing weight", "right"),
        ("replies", "right"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    rank = 0
    for row in board["rows"]:
        is_model = row["kind"] == "model"
        ranked = is_model and row["score"]["value"] is not None
        rank += ranked
        routing = row["routing"]["any_not_met"]["rate"] if row["routing"] else None
        name = row["name"] if is_model else f"{row['name']} ({row['kind']})"
        table.add_row(
            str(rank) if ranked else "",
            escape(name),
            estimate(row["score"]),
            estimate(routing, interval=False),
            percent(row["refusal_rate"]),
            percent(row["missing_weight"]),
            str(row["n_replies"]),
        )
    return table


def _dimensions(board: dict[str, Any]) -> Table:
    names = [dimension["name"] for dimension in board["dimensions"]]
    cells = [
        [
            percent(found["score"]["value"]) if found else "–"
            for found in (row["dimensions"].get(d["slug"]) for d in board["dimensions"])
        ]
        for row in board["rows"]
    ]
    respondents = [row["name"] for row in board["rows"]]
    # The fewer columns, the better they fit a terminal.
    if len(respondents) < len(names):
        names, respondents = respondents, names
        cells = [list(column) for column in zip(*cells, strict=True)]
    table = Table(title="By dimension, in per cent")
    table.add_column("")
    for name in names:
        table.add_column(escape(name), justify="right", overflow="fold")
    for name, values in zip(respondents, cells, strict=True):
        table.add_row(escape(name), *values)
    return table

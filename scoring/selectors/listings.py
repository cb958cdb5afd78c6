"""What the lists and cards of the scoring pages read; query counts do not grow with rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, QuerySet

from annotation.models import Assignment, Round
from corpus.models import Collection
from corpus.selectors import CollectionSummary, summarise_collections
from scoring.models import Calibration, Call, Judge, Run, RunItem, ScoreSet, Verdict
from scoring.selectors.runs import UNFINISHED


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """A judge and what was done with it."""

    judge: Judge
    verdicts: int
    runs: int
    calibrations: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run and how much of it is finished."""

    run: Run
    finished: int
    total: int


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run has made so far, and the calls that gave nothing, by reason."""

    met: int
    not_met: int
    faults: list[tuple[str, int]]
    failed_items: list[tuple[str, int]]

    @property
    def verdicts(self) -> int:
        """Return how many verdicts there are."""
        return self.met + self.not_met


@dataclass(frozen=True, slots=True)
class ResultState:
    """How far a collection is on the way to a leaderboard."""

    summary: CollectionSummary
    boards: list[ScoreSet]
    rounds: int
    submitted: int
    run: Run | None
    any_judge: bool


def judge_rows(judges: QuerySet[Judge]) -> list[JudgeRow]:
    """Return judges with their numbers of verdicts, runs and calibrations."""
    chosen = list(judges)
    verdicts = _count_by_judge(Verdict.objects.filter(judge__in=chosen, draw=0))
    runs = _count_by_judge(Run.objects.filter(judge__in=chosen))
    calibrations = _count_by_judge(Calibration.objects.filter(judge__in=chosen))
    return [
        JudgeRow(
            judge,
            verdicts.get(judge.pk, 0),
            runs.get(judge.pk, 0),
            calibrations.get(judge.pk, 0),
        )
        for judge in chosen
    ]


def run_rows(runs: Iterable[Run]) -> list[RunRow]:
    """Return runs with the number of their items that need no more work."""
    chosen = list(runs)
    finished: dict[int, int] = {}
    total: dict[int, int] = {}
    counted = (
        RunItem.objects.filter(run__in=chosen)
        .order_by()
        .values_list("run", "state")
        .annotate(Count("id"))
    )
    for run, state, number in counted:
        total[run] = total.get(run, 0) + number
        if state in (RunItem.State.DONE, RunItem.State.FAILED):
            finished[run] = finished.get(run, 0) + number
    return [RunRow(run, finished.get(run.pk, 0), total.get(run.pk, 0)) for run in chosen]


def run_outcome(run: Run) -> RunOutcome:
    """Return what a run has made so far."""
    mix = dict(
        Verdict.objects.filter(call__run_item__run=run)
        .order_by()
        .values_list("met")
        .annotate(Count("id"))
    )
    faults = (
        Call.objects.filter(run_item__run=run, outcome__isnull=False)
        .exclude(outcome=Call.Outcome.OK)
        .order_by()
        .values_list("outcome")
        .annotate(Count("id"))
    )
    failed = (
        RunItem.objects.filter(run=run, state=RunItem.State.FAILED)
        .order_by()
        .values_list("last_error")
        .annotate(Count("id"))
    )
    words = dict(Call.Outcome.choices)
    return RunOutcome(
        met=mix.get(True, 0),
        not_met=mix.get(False, 0),
        faults=sorted((str(words[outcome]), number) for outcome, number in faults),
        failed_items=sorted((error or "no reason was kept", number) for error, number in failed),
    )


def calibrations_of(judge: Judge) -> QuerySet[Calibration]:
    """Return the calibrations of a judge, newest first, with their decisions."""
    return (
        Calibration.objects.filter(judge=judge)
        .select_related("split__collection", "created_by")
        .defer("metrics", "parameters")
        .prefetch_related("decisions")
        .order_by("-number")
    )


def result_states(collections: QuerySet[Collection]) -> list[ResultState]:
    """Return how far each collection is on the way to a leaderboard."""
    summaries = summarise_collections(collections)
    ids = [summary.collection.pk for summary in summaries]
    boards: dict[int, list[ScoreSet]] = {}
    for board in _newest_boards(ids):
        boards.setdefault(board.collection_id, []).append(board)
    rounds = _count_by("collection", Round.objects.filter(collection__in=ids))
    submitted = _count_by(
        "round_item__round__collection",
        Assignment.objects.filter(
            round_item__round__collection__in=ids, state=Assignment.State.SUBMITTED
        ),
    )
    going_on = Run.objects.filter(collection__in=ids, status__in=UNFINISHED)
    runs = {run.collection_id: run for run in going_on.order_by("id")}
    any_judge = Judge.objects.exists()
    return [
        ResultState(
            summary,
            boards=sorted(
                boards.get(summary.collection.pk, []),
                key=lambda board: (not board.payload["approved"], -board.judge_id),
            ),
            rounds=rounds.get(summary.collection.pk, 0),
            submitted=submitted.get(summary.collection.pk, 0),
            run=runs.get(summary.collection.pk),
            any_judge=any_judge,
        )
        for summary in summaries
    ]


def _newest_boards(collections: Sequence[int]) -> QuerySet[ScoreSet]:
    newest = (
        ScoreSet.objects.filter(collection__in=collections)
        .order_by()
        .values("collection", "judge")
        .annotate(newest=Max("id"))
        .values("newest")
    )
    return (
        ScoreSet.objects.filter(pk__in=newest)
        .select_related("judge", "calibration")
        .defer("judge__artifact", "calibration__metrics", "calibration__parameters")
    )


def _count_by_judge(rows: QuerySet[Any]) -> dict[int, int]:
    return _count_by("judge", rows)


def _count_by(name: str, rows: QuerySet[Any]) -> dict[int, int]:
    return dict(rows.order_by().values(name).annotate(all=Count("id")).values_list(name, "all"))

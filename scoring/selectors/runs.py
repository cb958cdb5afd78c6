"""Judges, their runs and their verdicts."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from corpus.models import Collection
from corpus.schema import digest
from scoring.models import Judge, Run, RunItem, Verdict

UNFINISHED = (Run.Status.PENDING, Run.Status.RUNNING, Run.Status.PAUSED)
ENDED = (Run.Status.DONE, Run.Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Where a run stands; `failed` items are finished too."""

    total: int
    pending: int
    leased: int
    done: int
    failed: int
    per_minute: float | None
    seconds_left: int | None
    last_error: str
    ended: bool

    @property
    def finished(self) -> int:
        """Return how many items need no more work."""
        return self.done + self.failed

    @property
    def share(self) -> float:
        """Return the finished share, 0 to 1; an empty run is finished."""
        return self.finished / self.total if self.total else 1.0


def judge_digest(
    *,
    kind: str,
    endpoint: str,
    model: str,
    prompt: str,
    params: dict[str, Any],
    artifact: dict[str, Any] | None,
    mode: str,
) -> str:
    """Return the digest over all that can change a verdict, with the artifact by its own."""
    return digest(
        {
            "artifact": None if artifact is None else digest(artifact),
            "endpoint": endpoint,
            "kind": kind,
            "mode": mode,
            "model": model,
            "params": params,
            "prompt": prompt,
        }
    )


def judges() -> QuerySet[Judge]:
    """Return all judges, newest version of a name first, without their artifacts."""
    return Judge.objects.defer("artifact").order_by("name", "-version")


def unfinished_run(judge: Judge, collection: Collection) -> Run | None:
    """Return the run of this judge on this collection that has not ended."""
    return (
        Run.objects.filter(
            kind=Run.Kind.JUDGE, judge=judge, collection=collection, status__in=UNFINISHED
        )
        .order_by("id")
        .first()
    )


def run_progress(run: Run) -> RunProgress:
    """Count a run's items and estimate how long the rest takes."""
    counts = dict(
        RunItem.objects.filter(run=run).order_by().values_list("state").annotate(Count("id"))
    )
    done, failed = counts.get("done", 0), counts.get("failed", 0)
    left = counts.get("pending", 0) + counts.get("leased", 0)
    per_minute = _per_minute(run, done + failed)
    moving = run.status in (Run.Status.PENDING, Run.Status.RUNNING)
    seconds_left = round(left / per_minute * 60) if per_minute and moving else None
    last_error = run.last_error
    if failed and not last_error:
        newest = RunItem.objects.filter(run=run, state="failed").exclude(last_error="")
        last_error = newest.order_by("-id").values_list("last_error", flat=True).first() or ""
    return RunProgress(
        total=sum(counts.values()),
        pending=counts.get("pending", 0),
        leased=counts.get("leased", 0),
        done=done,
        failed=failed,
        per_minute=per_minute,
        seconds_left=seconds_left,
        last_error=last_error,
        ended=run.status in ENDED,
    )


def _per_minute(run: Run, finished: int) -> float | None:
    if run.started_at is None or not finished:
        return None
    seconds = ((run.finished_at or timezone.now()) - run.started_at).total_seconds()
    return finished / seconds * 60 if seconds > 0 else None


def verdicts_of(judge: Judge, collection: Collection) -> dict[tuple[int, int], bool]:
    """Return met by (reply, criterion) of draw 0; of several rubric digests the newest counts."""
    rows = (
        Verdict.objects.filter(judge=judge, draw=0, reply__conversation__collection=collection)
        .order_by("id")
        .values_list("reply_id", "criterion_id", "met")
    )
    return {(reply, criterion): met for reply, criterion, met in rows.iterator(chunk_size=5000)}


def verdict_mark(judge: Judge, collection: Collection) -> list[int]:
    """Return count and newest of the verdicts that enter scores; verdicts are append-only."""
    found = Verdict.objects.filter(
        judge=judge, draw=0, reply__conversation__collection=collection
    ).aggregate(count=Count("id"), newest=Max("id"))
    return [found["count"], found["newest"] or 0]

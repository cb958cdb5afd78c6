"""The engine of runs: the same code in a worker, inside `serve` and in a command.

The tables own the work. A worker claims a batch of replies with a lease, writes the calls, asks
the judge, and settles calls, verdicts and items in one transaction. Whatever ends a worker, its
lease lapses, another one claims the items again, and no unit gets a second verdict.
"""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from corpus.models import Reply, RubricItem
from corpus.schema import digest
from scoring import baseline
from scoring.models import Call, Judge, Run, RunItem, Verdict
from scoring.services import judge_conversation_key, refresh_scores
from scoring.services.judges import judged_text

logger = logging.getLogger(__name__)

SLICE_SECONDS = 20.0
LEASE_SECONDS = 20
BATCH = 16
MAX_ATTEMPTS = 5

# What a slice left behind: the run is over, has more to hand out, is all in other hands, or was
# paused or cancelled.
Outcome = Literal["ended", "more", "elsewhere", "halted"]
Progress = Callable[[int], None]

_ACTIVE = (Run.Status.PENDING, Run.Status.RUNNING)


@dataclass(slots=True)
class Work:
    """A claimed item, what is to be asked of it, the call that was written, and what came back."""

    item: RunItem
    reply: Reply
    units: list[tuple[int, str]]
    call: Call | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    error: str = ""


def worker_name() -> str:
    """Return a name that no other worker has."""
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{secrets.token_hex(4)}"


def work_on(
    run_id: int,
    *,
    worker: str | None = None,
    seconds: float = SLICE_SECONDS,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Judge items of a run until the slice is over, the run has ended, or `stop` is set."""
    name = worker or worker_name()
    deadline = time.monotonic() + seconds
    run = Run.objects.select_related("judge", "collection").get(pk=run_id)
    if run.status not in _ACTIVE:
        return "ended" if run.status in (Run.Status.DONE, Run.Status.CANCELLED) else "halted"
    judge = run.judge
    assert judge is not None, "a run of judging has a judge, by constraint"
    Run.objects.filter(pk=run_id, status=Run.Status.PENDING).update(status=Run.Status.RUNNING)
    Run.objects.filter(pk=run_id, started_at__isnull=True).update(started_at=timezone.now())
    try:
        predictor = baseline.Predictor(judge.artifact)
    except baseline.ArtifactError as error:
        # Nothing of this run can be judged; each item says why.
        return _fail_all(run, str(error))
    while True:
        if not Run.objects.filter(pk=run_id, status__in=_ACTIVE).exists():
            return "halted"
        if (stop is not None and stop.is_set()) or time.monotonic() >= deadline:
            return "more"
        items = claim(run_id, name, BATCH)
        if items:
            judge_batch(run, judge, predictor, items, name)
            if progress is not None:
                progress(len(items))
        elif finish(run):
            return "ended"
        else:
            return "more" if has_claimable(run_id) else "elsewhere"


def judge_batch(
    run: Run, judge: Judge, predictor: baseline.Predictor, items: list[RunItem], worker: str
) -> None:
    """Write the calls, ask the judge, settle; no transaction is open while the judge works."""
    batch = prepare(judge, items)
    renewed = time.monotonic()
    for work in batch:
        answer(run, judge, predictor, work)
        if time.monotonic() - renewed > LEASE_SECONDS / 3:
            renew(run.pk, worker)
            renewed = time.monotonic()
    settle(run, batch, worker)


def claimable(run_id: int, now: datetime) -> Q:
    """Return the condition of items that may be claimed: waiting, or with a lapsed lease."""
    free = Q(state=RunItem.State.PENDING)
    lapsed = Q(state=RunItem.State.LEASED, lease_until__lt=now)
    return Q(run=run_id) & (free | lapsed)


def has_claimable(run_id: int) -> bool:
    """Tell whether some item of a run waits for a worker."""
    return RunItem.objects.filter(claimable(run_id, timezone.now())).exists()


@transaction.atomic
def claim(run_id: int, worker: str, size: int = BATCH) -> list[RunItem]:
    """Take up to `size` items for a worker; no two workers ever take the same one."""
    now = timezone.now()
    condition = claimable(run_id, now)
    exhausted = RunItem.objects.filter(condition, attempts__gte=MAX_ATTEMPTS)
    exhausted.update(
        state=RunItem.State.FAILED,
        lease_until=None,
        last_error=f"Given up: {MAX_ATTEMPTS} workers ended in the middle of it.",
    )
    rows = RunItem.objects.filter(condition).order_by("id")
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True)
    chosen = list(rows.values_list("id", flat=True)[:size])
    # The condition again: a worker without row locks may have been overtaken.
    RunItem.objects.filter(condition, pk__in=chosen).update(
        state=RunItem.State.LEASED,
        worker=worker,
        lease_until=now + timedelta(seconds=LEASE_SECONDS),
        attempts=F("attempts") + 1,
    )
    return list(
        RunItem.objects.filter(pk__in=chosen, worker=worker, state=RunItem.State.LEASED)
        .select_related("reply", "conversation")
        .order_by("id")
    )


def renew(run_id: int, worker: str) -> None:
    """Hold on to the items in work."""
    RunItem.objects.filter(run=run_id, worker=worker, state=RunItem.State.LEASED).update(
        lease_until=timezone.now() + timedelta(seconds=LEASE_SECONDS)
    )


@transaction.atomic
def prepare(judge: Judge, items: Sequence[RunItem]) -> list[Work]:
    """Find what each item still needs and write one call for it before it is made.

    A call that another worker left without an outcome was cut off with that worker.
    """
    left = Call.objects.filter(run_item__in=items, outcome__isnull=True)
    left.update(outcome=Call.Outcome.CUT, settled_at=timezone.now())
    rubrics = _rubrics(item.conversation_id for item in items)
    replies = [item.reply_id for item in items if item.reply_id is not None]
    known = set(
        Verdict.objects.filter(judge=judge, reply__in=replies, draw=0).values_list(
            "reply_id", "criterion_id"
        )
    )
    batch = []
    for item in items:
        assert item.reply is not None, "an item of a run of judging has a reply"
        asked = rubrics.get(item.conversation_id, [])
        units = [(key, text) for key, text in asked if (item.reply.pk, key) not in known]
        batch.append(Work(item=item, reply=item.reply, units=units))
    needed = [work for work in batch if work.units]
    calls = Call.objects.bulk_create(
        [
            Call(
                run_item=work.item,
                attempt=work.item.attempts,
                request_digest=digest(
                    [judge.digest, work.reply.digest, [text for _, text in work.units]]
                ),
            )
            for work in needed
        ]
    )
    for work, call in zip(needed, calls, strict=True):
        work.call = call
    return batch


def answer(run: Run, judge: Judge, predictor: baseline.Predictor, work: Work) -> None:
    """Ask the judge about one reply; a fault stays with this reply."""
    if not work.units:
        return
    conversation = judge_conversation_key(run.collection.slug, work.item.conversation.key)
    try:
        found = predictor.probabilities(
            conversation, judged_text(work.reply.turns), [text for _, text in work.units]
        )
    except Exception as error:
        logger.exception("run %s: reply %s could not be judged", run.pk, work.reply.pk)
        work.error = f"{type(error).__name__}: {error}"[:500]
        return
    threshold = float(judge.params.get("threshold", baseline.THRESHOLD))
    work.verdicts = [
        Verdict(
            judge=judge,
            reply=work.reply,
            criterion_id=criterion,
            met=bool(probability >= threshold),
            probability=round(float(probability), 6),
            call=work.call,
        )
        for (criterion, _), probability in zip(work.units, found, strict=True)
    ]


@transaction.atomic
def settle(run: Run, batch: Sequence[Work], worker: str) -> None:
    """Keep what came back, all of a batch or nothing.

    Items whose lease was lost meanwhile belong to another worker, who judges them again.
    """
    rows = RunItem.objects.filter(
        pk__in=[work.item.pk for work in batch], worker=worker, state=RunItem.State.LEASED
    )
    held = set(rows.select_for_update().values_list("pk", flat=True))
    kept = [work for work in batch if work.item.pk in held]
    good = [work for work in kept if not work.error]
    bad = [work for work in kept if work.error]
    now = timezone.now()
    _settle_calls(good, Call.Outcome.OK, now)
    _settle_calls(bad, Call.Outcome.CUT, now)
    # A verdict that is there already stays as it is: one per key.
    Verdict.objects.bulk_create(
        [verdict for work in good for verdict in work.verdicts], ignore_conflicts=True
    )
    RunItem.objects.filter(pk__in=[work.item.pk for work in good]).update(
        state=RunItem.State.DONE, lease_until=None, last_error=""
    )
    for work in bad:
        RunItem.objects.filter(pk=work.item.pk).update(
            state=RunItem.State.FAILED, lease_until=None, last_error=work.error
        )
    if bad:
        Run.objects.filter(pk=run.pk).update(last_error=bad[-1].error)


def finish(run: Run) -> bool:
    """End a run in which nothing waits or is in work, and refresh its scores; True if it ended."""
    open_items = RunItem.objects.filter(
        run=run, state__in=(RunItem.State.PENDING, RunItem.State.LEASED)
    )
    if open_items.exists():
        return False
    ended = Run.objects.filter(pk=run.pk, status__in=_ACTIVE).update(
        status=Run.Status.DONE, finished_at=timezone.now()
    )
    if ended and run.judge is not None:
        refresh_scores(collection=run.collection, judge=run.judge)
    return True


def waiting_runs() -> list[int]:
    """Return the runs that no worker holds a lease in and that have not ended."""
    now = timezone.now()
    held = RunItem.objects.filter(state=RunItem.State.LEASED, lease_until__gte=now)
    return list(
        Run.objects.filter(kind=Run.Kind.JUDGE, status__in=_ACTIVE)
        .exclude(pk__in=held.values("run"))
        .order_by("id")
        .values_list("id", flat=True)
    )


def _settle_calls(works: Sequence[Work], outcome: Call.Outcome, now: datetime) -> None:
    calls = [work.call.pk for work in works if work.call is not None]
    if calls:
        Call.objects.filter(pk__in=calls, outcome__isnull=True).update(
            outcome=outcome, settled_at=now
        )


def _rubrics(conversations: Iterable[int]) -> dict[int, list[tuple[int, str]]]:
    rows = (
        RubricItem.objects.filter(
            rubric__status="published", rubric__conversation__in=set(conversations)
        )
        .order_by("rubric_id", "position")
        .values_list("rubric__conversation_id", "criterion_id", "criterion__text")
    )
    found: dict[int, list[tuple[int, str]]] = {}
    for conversation, criterion, text in rows:
        found.setdefault(conversation, []).append((criterion, text))
    return found


def _fail_all(run: Run, error: str) -> Outcome:
    RunItem.objects.filter(claimable(run.pk, timezone.now())).update(
        state=RunItem.State.FAILED, lease_until=None, last_error=error
    )
    Run.objects.filter(pk=run.pk).update(last_error=error)
    return "ended" if finish(run) else "elsewhere"

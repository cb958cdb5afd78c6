"""Runs: start, pause, resume, cancel, retry."""

from django.core.exceptions import ValidationError
from django.db import transaction

from corpus.models import Collection, Conversation, Reply
from distressbench_site.accounts.models import User
from distressbench_site.accounts.services import record_audit
from scoring.models import Judge, Run, RunItem
from scoring.selectors import unfinished_run

CHUNK = 1000


@transaction.atomic
def start_run(*, judge: Judge, collection: Collection, actor: User | None) -> Run:
    """Put every reply whose conversation has a published rubric into a new run."""
    if judge.kind != Judge.Kind.BASELINE:
        raise ValidationError(
            f"{judge} is a language model; this installation runs the built-in baseline only."
        )
    # Two starts at once must not make two runs over the same replies.
    Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    under_way = unfinished_run(judge, collection)
    if under_way is not None:
        raise ValidationError(
            f"Run {under_way.pk} of {judge} on {collection.slug} has not ended yet."
        )
    replies = list(
        Reply.objects.filter(
            conversation__collection=collection, conversation__rubrics__status="published"
        )
        .exclude(conversation__status=Conversation.Status.WITHDRAWN)
        .order_by("conversation_id", "respondent_id", "sample")
        .values_list("id", "conversation_id", "respondent_id", "sample")
    )
    if not replies:
        raise ValidationError(f"{collection.slug} has no reply to judge under a published rubric.")
    run = Run.objects.create(
        kind=Run.Kind.JUDGE, collection=collection, judge=judge, created_by=actor
    )
    RunItem.objects.bulk_create(
        [
            RunItem(
                run=run,
                reply_id=reply,
                conversation_id=conversation,
                respondent_id=respondent,
                sample=sample,
            )
            for reply, conversation, respondent, sample in replies
        ],
        batch_size=CHUNK,
    )
    record_audit(
        actor=actor,
        action="run started",
        target=run,
        detail={"judge": str(judge), "collection": collection.slug, "replies": len(replies)},
    )
    return run


def pause_run(*, run_id: int, actor: User | None) -> None:
    """Stop handing out work; replies in work are finished."""
    _move(run_id, (Run.Status.PENDING, Run.Status.RUNNING), Run.Status.PAUSED, "paused", actor)


def resume_run(*, run_id: int, actor: User | None) -> None:
    """Let a paused run go on."""
    _move(run_id, (Run.Status.PAUSED,), Run.Status.PENDING, "resumed", actor)


def cancel_run(*, run_id: int, actor: User | None) -> None:
    """End a run for good; verdicts that it made stay."""
    unfinished = (Run.Status.PENDING, Run.Status.RUNNING, Run.Status.PAUSED)
    _move(run_id, unfinished, Run.Status.CANCELLED, "cancelled", actor)


@transaction.atomic
def retry_failed(*, run_id: int, actor: User | None) -> int:
    """Let the failed replies of a run be judged again; returns how many there are."""
    run = Run.objects.select_for_update().get(pk=run_id)
    if run.status == Run.Status.CANCELLED:
        raise ValidationError("A cancelled run stays as it is; start a new one.")
    again = RunItem.objects.filter(run=run, state=RunItem.State.FAILED).update(
        state=RunItem.State.PENDING, attempts=0, worker="", lease_until=None
    )
    if not again:
        raise ValidationError("No reply of this run has failed.")
    Run.objects.filter(pk=run_id, status=Run.Status.DONE).update(
        status=Run.Status.PENDING, finished_at=None
    )
    Run.objects.filter(pk=run_id).update(last_error="")
    record_audit(actor=actor, action="run retried", target=run, detail={"replies": again})
    return again


@transaction.atomic
def _move(
    run_id: int, old: tuple[Run.Status, ...], new: Run.Status, act: str, actor: User | None
) -> None:
    if Run.objects.filter(pk=run_id, status__in=old).update(status=new) != 1:
        current = Run.objects.get(pk=run_id)
        raise ValidationError(f"Run {run_id} is {current.get_status_display()}.")
    record_audit(actor=actor, action=f"run {act}", target=f"run {run_id}")

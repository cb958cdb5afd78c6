"""Rounds: made, opened, paused, closed, and who labels in them."""

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from annotation.models import (
    Annotator,
    Assignment,
    AssignmentEvent,
    Round,
    RoundCriterion,
    RoundItem,
    RoundMember,
)
from annotation.services import slots
from annotation.services.people import admit_annotators
from annotation.services.text import checked_text
from corpus.models import Collection, Conversation, Reply, Rubric, RubricItem
from distressbench_site.accounts.models import User
from distressbench_site.accounts.services import record_audit

_CHUNK = 2000
_MAX_NAME = 200
_MAX_GUIDELINES = 200_000
_MAX_REASON = 2000


@transaction.atomic
def create_round(
    *,
    collection: Collection,
    name: str,
    purpose: str,
    guidelines: str,
    overlap: int,
    replies: Iterable[Reply],
    annotators: Iterable[Annotator],
    seed: int = 0,
    created_by: User | None,
    override_reason: str = "",
) -> Round:
    """Make a draft round that asks every criterion of each reply's published rubric.

    Researchers are annotators of practice rounds alone, unless `override_reason` says why not.
    """
    checked_text(name, _MAX_NAME, "name")
    checked_text(guidelines, _MAX_GUIDELINES, "guideline")
    chosen = {reply.pk: reply for reply in replies}
    rubrics = _rubrics_for(collection, chosen)
    round_ = Round(
        collection=collection,
        name=name.strip(),
        purpose=purpose,
        guidelines=guidelines,
        overlap=overlap,
        seed=seed,
        created_by=created_by,
    )
    round_.full_clean()
    round_.save()
    items = RoundItem.objects.bulk_create(
        [
            RoundItem(
                round=round_, reply=reply, rubric=rubrics[reply.conversation_id], position=position
            )
            for position, reply in enumerate(chosen.values(), start=1)
        ],
        batch_size=_CHUNK,
    )
    _ask_everything(items)
    slots.add_slots([item.pk for item in items], overlap)
    people = list({annotator.pk: annotator for annotator in annotators}.values())
    admit_annotators(
        round_=round_,
        annotators=people,
        reason=checked_text(override_reason, _MAX_REASON, "reason"),
        actor=created_by,
    )
    RoundMember.objects.bulk_create(
        [RoundMember(round=round_, annotator=annotator) for annotator in people]
    )
    record_audit(
        actor=created_by,
        action="round made",
        target=round_.name,
        detail={"replies": len(items), "overlap": overlap},
    )
    return round_


def open_round(*, round_id: int, actor: User | None) -> Round:
    """Let a draft or paused round hand out replies."""
    return _move(round_id, actor, {Round.Status.DRAFT, Round.Status.PAUSED}, Round.Status.OPEN)


def pause_round(*, round_id: int, actor: User | None) -> Round:
    """Let an open round hand out nothing for now."""
    return _move(round_id, actor, {Round.Status.OPEN}, Round.Status.PAUSED)


def close_round(*, round_id: int, actor: User | None) -> Round:
    """End a round; what was not submitted does not count."""
    return _move(round_id, actor, {Round.Status.OPEN, Round.Status.PAUSED}, Round.Status.CLOSED)


@transaction.atomic
def set_overlap(*, round_id: int, overlap: int, actor: User | None) -> Round:
    """Change how many people label each reply; only free slots come or go."""
    if type(overlap) is not int or not 1 <= overlap <= 10:
        raise ValidationError("The overlap is a whole number from 1 to 10.")
    round_ = Round.objects.select_for_update(of=("self",)).get(pk=round_id)
    if round_.status == Round.Status.CLOSED:
        raise ValidationError("This round is closed.")
    before, round_.overlap = round_.overlap, overlap
    round_.save(update_fields=["overlap"])
    items = list(round_.items.order_by("id").values_list("id", flat=True))
    for start in range(0, len(items), 500):
        chunk = items[start : start + 500]
        slots.trim_slots(chunk)
        slots.add_slots(chunk, overlap)
    record_audit(
        actor=actor,
        action="overlap changed",
        target=round_.name,
        detail={"before": before, "after": overlap},
    )
    return round_


@transaction.atomic
def add_member(
    *, round_id: int, annotator: Annotator, actor: User | None, override_reason: str = ""
) -> RoundMember:
    """Let an annotator label in a round; a researcher only with a reason."""
    round_ = Round.objects.get(pk=round_id)
    if round_.status == Round.Status.CLOSED:
        raise ValidationError("This round is closed.")
    admit_annotators(
        round_=round_,
        annotators=[annotator],
        reason=checked_text(override_reason, _MAX_REASON, "reason"),
        actor=actor,
    )
    member, _ = RoundMember.objects.update_or_create(
        round=round_, annotator=annotator, defaults={"active": True}
    )
    record_audit(
        actor=actor,
        action="annotator added",
        target=round_.name,
        detail={"annotator": annotator.pseudonym},
    )
    return member


@transaction.atomic
def remove_member(*, round_id: int, annotator: Annotator, actor: User | None) -> None:
    """Let an annotator label in a round no longer; submitted work stays, open work is freed."""
    round_ = Round.objects.get(pk=round_id)
    members = RoundMember.objects.filter(round=round_, annotator=annotator, active=True)
    if not members.update(active=False):
        return
    held = Assignment.objects.select_for_update(of=("self",)).filter(
        round_item__round=round_, annotator=annotator, state=Assignment.State.ACTIVE
    )
    for assignment in held.order_by("round_item_id"):
        slots.release(assignment, Assignment.State.LAPSED, AssignmentEvent.Kind.LAPSED)
    record_audit(
        actor=actor,
        action="annotator removed",
        target=round_.name,
        detail={"annotator": annotator.pseudonym},
    )


@transaction.atomic
def _move(round_id: int, actor: User | None, old: set[Round.Status], new: Round.Status) -> Round:
    stamps = {}
    if new == Round.Status.CLOSED:
        stamps["closed_at"] = timezone.now()
    if Round.objects.filter(pk=round_id, status__in=old).update(status=new, **stamps) != 1:
        now = Round.objects.get(pk=round_id)
        raise ValidationError(f"This round is {now.get_status_display()}.")
    round_ = Round.objects.get(pk=round_id)
    if new == Round.Status.OPEN and round_.opened_at is None:
        round_.opened_at = timezone.now()
        round_.save(update_fields=["opened_at"])
    record_audit(actor=actor, action=f"round {new.label}", target=round_.name)
    return round_


def _rubrics_for(collection: Collection, replies: dict[int, Reply]) -> dict[int, Rubric]:
    """Return the published rubric of each reply's conversation, or say what is missing."""
    if not replies:
        raise ValidationError("Choose at least one reply.")
    conversations = {reply.conversation_id for reply in replies.values()}
    elsewhere = Conversation.objects.filter(pk__in=conversations).exclude(collection=collection)
    if elsewhere.exists():
        raise ValidationError("All replies of a round belong to one collection.")
    withdrawn = Conversation.objects.filter(
        pk__in=conversations, status=Conversation.Status.WITHDRAWN
    )
    if withdrawn.exists():
        raise ValidationError("A withdrawn conversation is not labelled any more.")
    published = Rubric.objects.filter(
        conversation__in=conversations, status=Rubric.Status.PUBLISHED, items__isnull=False
    ).distinct()
    rubrics = {rubric.conversation_id: rubric for rubric in published}
    if missing := conversations - set(rubrics):
        keys = Conversation.objects.filter(pk__in=missing).order_by("key")
        named = ", ".join(keys.values_list("key", flat=True)[:5])
        raise ValidationError(f"There is no published rubric for {named}.")
    return rubrics


def _ask_everything(items: list[RoundItem]) -> None:
    criteria: dict[int, list[int]] = {}
    rows = RubricItem.objects.filter(rubric__in={item.rubric_id for item in items})
    for rubric, criterion in rows.order_by("rubric_id", "position").values_list(
        "rubric_id", "criterion_id"
    ):
        criteria.setdefault(rubric, []).append(criterion)
    RoundCriterion.objects.bulk_create(
        [
            RoundCriterion(round_item=item, criterion_id=criterion)
            for item in items
            for criterion in criteria[item.rubric_id]
        ],
        batch_size=_CHUNK,
    )

"""Who gets which reply: claims, leases, skipping and declining."""

from datetime import datetime
from functools import lru_cache

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Sum
from django.utils import timezone

from annotation.allocation import own_order
from annotation.models import (
    Annotator,
    Assignment,
    AssignmentEvent,
    Round,
    RoundItem,
    RoundMember,
)
from annotation.selectors import takeable_items
from annotation.services import slots
from annotation.services.people import barred_from
from annotation.services.text import checked_text

# How many items a claim tries when others take them at the same moment.
_ATTEMPTS = 50
MAX_REASON = 500

State = Assignment.State
Kind = AssignmentEvent.Kind


def claim_next(*, round_id: int, annotator: Annotator) -> Assignment | None:
    """Give an annotator the next reply of a round, or None where nothing is left.

    Own work in progress comes first, then own work that had lapsed, then new replies in the
    annotator's own order, then those that were skipped once.
    """
    round_ = Round.objects.get(pk=round_id)
    _require_open(round_, annotator)
    now = timezone.now()
    with transaction.atomic():
        slots.lapse_expired(round_id, now)
    # What others have locked is passed over at first, and waited for before it is called taken.
    for wait in (False, True):
        # A reader first: under IMMEDIATE a transaction waits for other writers from its start.
        for assignment_id, item_id in _candidates(round_, annotator):
            with transaction.atomic():
                taken = _take(round_, annotator, assignment_id, item_id, wait=wait)
            if taken is not None:
                return taken
    return None


def renew_lease(*, assignment_id: int, annotator: Annotator) -> Assignment:
    """Hold on to a slot; the holder can always renew."""
    with transaction.atomic():
        assignment = locked_assignment(assignment_id, annotator)
        now = timezone.now()
        if assignment.state == State.ACTIVE:
            assignment.lease_until = slots.lease_end(assignment, now)
            assignment.save(update_fields=["lease_until"])
        elif assignment.state == State.LAPSED and slots.may_resume(assignment):
            slots.try_resume(assignment, now)
    return assignment


@transaction.atomic
def skip_assignment(*, assignment_id: int, annotator: Annotator) -> Assignment:
    """Put a reply aside for now; its slot is free for others, and the draft stays."""
    return _leave(assignment_id, annotator, State.SKIPPED, Kind.SKIPPED, "")


@transaction.atomic
def decline_assignment(*, assignment_id: int, annotator: Annotator, reason: str = "") -> Assignment:
    """Leave a reply to others for good; a reason may be given and is never asked for."""
    said = checked_text(reason, MAX_REASON, "reason").strip()
    return _leave(assignment_id, annotator, State.DECLINED, Kind.DECLINED, said)


def locked_assignment(assignment_id: int, annotator: Annotator) -> Assignment:
    """Return an annotator's own assignment, locked until the transaction ends."""
    found = (
        Assignment.objects.select_for_update(of=("self",))
        .select_related("round_item__round")
        .filter(pk=assignment_id, annotator=annotator)
        .first()
    )
    if found is None:
        raise ValidationError("This reply is not assigned to you.")
    return found


def _require_open(round_: Round, annotator: Annotator) -> None:
    if round_.status != Round.Status.OPEN:
        raise ValidationError(f"This round is {round_.get_status_display()}.")
    if not slots.is_member(round_.pk, annotator.pk):
        raise ValidationError("You are not in this round.")
    if barred_from(round_, [annotator]):
        raise ValidationError("Somebody with the role researcher labels in practice rounds alone.")


def _candidates(round_: Round, annotator: Annotator) -> list[tuple[int | None, int]]:
    """Return (own assignment or None, item) in the order in which to try them."""
    mine = list(
        Assignment.objects.filter(round_item__round=round_, annotator=annotator)
        .annotate(last=Max("events__id"))
        .order_by("last")
        .values_list("id", "round_item_id", "state")
    )
    own = {item: pk for pk, item, _ in mine}
    held: list[int] = [item for _, item, state in mine if state == State.ACTIVE]
    if held:
        return [(own[item], item) for item in held]
    waiting = set(
        takeable_items(annotator, timezone.now())
        .filter(round=round_)
        .order_by()
        .values_list("id", flat=True)
    )
    lapsed = [item for _, item, state in mine if state == State.LAPSED and item in waiting]
    skipped = [item for _, item, state in mine if state == State.SKIPPED and item in waiting]
    fresh = [item for item in _order(round_, annotator) if item in waiting and item not in own]
    return [(own.get(item), item) for item in [*lapsed, *fresh, *skipped][:_ATTEMPTS]]


def _order(round_: Round, annotator: Annotator) -> tuple[int, ...]:
    mark = RoundItem.objects.filter(round=round_).aggregate(n=Count("id"), sum=Sum("id"))
    return _cached_order(
        round_.pk, round_.seed, annotator.pseudonym, mark["n"] or 0, mark["sum"] or 0
    )


@lru_cache(maxsize=256)
def _cached_order(
    round_id: int, seed: int, pseudonym: str, count: int, ids_sum: int
) -> tuple[int, ...]:
    """Compute an order once per process and set of items."""
    items = RoundItem.objects.filter(round_id=round_id).order_by()
    pairs = list(items.values_list("id", "reply__conversation_id"))
    return tuple(own_order(seed, pseudonym, pairs))


def _take(
    round_: Round, annotator: Annotator, assignment_id: int | None, item_id: int, *, wait: bool
) -> Assignment | None:
    """Take one item if it still can be; the unique constraints have the last word."""
    now = timezone.now()
    # One claim at a time for each person, so that two open tabs get the same reply.
    member = RoundMember.objects.select_for_update(of=("self",)).filter(
        round=round_, annotator=annotator, active=True, round__status=Round.Status.OPEN
    )
    if not member:
        return None
    held = Assignment.objects.filter(
        round_item__round=round_, annotator=annotator, state=State.ACTIVE
    )
    own = held.order_by("id").values_list("id", flat=True).first() or assignment_id
    if own is not None:
        return _take_again(own, annotator, now)
    slot = slots.lock_free_slot(item_id, wait=wait)
    if slot is None:
        return None
    try:
        with transaction.atomic():
            assignment = Assignment.objects.create(
                round_item_id=item_id,
                slot=slot,
                annotator=annotator,
                lease_until=slots.lease_end(None, now),
                claimed_at=now,
                position=_next_position(round_, annotator),
            )
            slots.record(assignment, Kind.CLAIMED)
    except IntegrityError:
        return None
    return assignment


def _take_again(assignment_id: int, annotator: Annotator, now: datetime) -> Assignment | None:
    assignment = locked_assignment(assignment_id, annotator)
    if assignment.state == State.ACTIVE:
        assignment.lease_until = slots.lease_end(assignment, now)
        assignment.save(update_fields=["lease_until"])
        return assignment
    if assignment.state not in {State.LAPSED, State.SKIPPED}:
        # Declined or submitted in another tab meanwhile.
        return None
    return assignment if slots.try_resume(assignment, now) else None


def _next_position(round_: Round, annotator: Annotator) -> int:
    mine = Assignment.objects.filter(round_item__round=round_, annotator=annotator)
    return (mine.aggregate(last=Max("position"))["last"] or 0) + 1


def _leave(
    assignment_id: int, annotator: Annotator, state: str, kind: str, reason: str
) -> Assignment:
    assignment = locked_assignment(assignment_id, annotator)
    if assignment.state == state:
        return assignment
    if assignment.state not in {State.ACTIVE, State.LAPSED, State.SKIPPED}:
        raise ValidationError(f"This reply is {assignment.get_state_display()} already.")
    assignment.reason = reason
    slots.release(assignment, state, kind)
    return assignment

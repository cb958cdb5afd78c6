"""Slots: taken, held and given back. Every function here runs inside a transaction.

The number of an item's slots is the overlap, or more only while more are held (after the overlap
was lowered). So a free slot is always one that may be taken, and no race exceeds the overlap.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from annotation.models import (
    Assignment,
    AssignmentEvent,
    Round,
    RoundItem,
    RoundMember,
    Slot,
)

LIVE = [Assignment.State.ACTIVE, Assignment.State.SUBMITTED]


def free_slots() -> QuerySet[Slot]:
    """Return the slots that nobody holds."""
    held = Assignment.objects.filter(slot=OuterRef("pk"), state__in=LIVE)
    return Slot.objects.filter(~Exists(held))


def lease_end(assignment: Assignment | None, now: datetime) -> datetime:
    """Return until when the slot is held: longer once something is answered."""
    if assignment is not None and assignment.started_at is not None:
        return now + timedelta(hours=settings.LEASE_HOURS_STARTED)
    return now + timedelta(minutes=settings.LEASE_MINUTES_UNTOUCHED)


def record(assignment: Assignment, kind: str) -> None:
    """Write what happened to an assignment."""
    AssignmentEvent.objects.create(assignment=assignment, kind=kind)


def lock_items(items: Iterable[int], *, wait: bool = True) -> list[int]:
    """Lock items, in one order everywhere, for all that gives or takes their slots.

    Without `wait` those that somebody has locked are left out of what is returned.
    """
    rows = RoundItem.objects.filter(pk__in=list(items)).order_by("id")
    if connection.features.has_select_for_update_skip_locked:
        # A slot refers to its item, so that its insertion needs a weaker lock on the same row.
        rows = rows.select_for_update(skip_locked=not wait, no_key=True)
    return list(rows.values_list("id", flat=True))


def lock_free_slot(item_id: int, *, wait: bool) -> Slot | None:
    """Return a free slot of an item, which is locked; None where all are held.

    Without `wait` an item that somebody has locked counts as full, though they may give back.
    """
    if not lock_items([item_id], wait=wait):
        return None
    return free_slots().filter(round_item_id=item_id).order_by("number").first()


def release(assignment: Assignment, state: str, kind: str) -> None:
    """Give a slot back; what was answered stays as a draft."""
    slot_id = assignment.slot_id
    assignment.state = state
    assignment.slot = None
    assignment.lease_until = None
    assignment.save(update_fields=["state", "slot", "lease_until", "reason"])
    record(assignment, kind)
    if slot_id is not None:
        trim_slots([assignment.round_item_id])


def lapse_expired(round_id: int, now: datetime) -> None:
    """Free the slots whose lease has run out; no sweeper is needed."""
    expired = Assignment.objects.filter(
        round_item__round_id=round_id, state=Assignment.State.ACTIVE, lease_until__lt=now
    )
    if connection.features.has_select_for_update_skip_locked:
        expired = expired.select_for_update(skip_locked=True, of=("self",))
    # Items are locked in one order everywhere, so that two transactions never wait for each other.
    for assignment in expired.order_by("round_item_id", "id"):
        release(assignment, Assignment.State.LAPSED, AssignmentEvent.Kind.LAPSED)


def try_resume(assignment: Assignment, now: datetime) -> bool:
    """Take a slot again for work that had given its own back."""
    slot = lock_free_slot(assignment.round_item_id, wait=True)
    if slot is None:
        return False
    assignment.state = Assignment.State.ACTIVE
    assignment.slot = slot
    assignment.lease_until = lease_end(assignment, now)
    assignment.save(update_fields=["state", "slot", "lease_until"])
    record(assignment, AssignmentEvent.Kind.RESUMED)
    return True


def add_slots(items: Iterable[int], overlap: int) -> None:
    """Give each item as many slots as the overlap, where it has fewer."""
    wanted = list(items)
    numbers: dict[int, set[int]] = {item: set() for item in wanted}
    for item, number in Slot.objects.filter(round_item__in=wanted).values_list(
        "round_item_id", "number"
    ):
        numbers[item].add(number)
    missing = [
        Slot(round_item_id=item, number=number)
        for item, taken in numbers.items()
        for number in [n for n in range(1, 11) if n not in taken][: max(0, overlap - len(taken))]
    ]
    Slot.objects.bulk_create(missing, batch_size=2000)


def trim_slots(items: Iterable[int]) -> None:
    """Remove free slots of items that have more slots than the overlap of their round."""
    wanted = lock_items(items)
    # Read after locking: a change of the overlap that was under way is committed by now.
    slots: dict[int, list[int]] = {}
    ordered = Slot.objects.filter(round_item__in=wanted).order_by("round_item_id", "number")
    for slot_id, item in ordered.values_list("id", "round_item_id"):
        slots.setdefault(item, []).append(slot_id)
    overlap = dict(
        RoundItem.objects.filter(pk__in=wanted).values_list("id", "round__overlap").order_by()
    )
    crowded = {item: ids for item, ids in slots.items() if len(ids) > overlap[item]}
    if not crowded:
        return
    free = set(
        free_slots().filter(round_item__in=list(crowded)).values_list("id", flat=True).order_by()
    )
    surplus = [
        slot_id
        for item, ids in crowded.items()
        for slot_id in [i for i in reversed(ids) if i in free][: len(ids) - overlap[item]]
    ]
    Slot.objects.filter(pk__in=surplus).delete()


def is_member(round_id: int, annotator_id: int) -> bool:
    """Return whether somebody may label in a round now."""
    return RoundMember.objects.filter(round=round_id, annotator=annotator_id, active=True).exists()


def may_resume(assignment: Assignment) -> bool:
    """Return whether work that gave its slot back may take one again."""
    round_ = assignment.round_item.round
    return round_.status == Round.Status.OPEN and is_member(round_.pk, assignment.annotator_id)

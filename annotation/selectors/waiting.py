"""Which replies are still there for one annotator."""

import json
from datetime import datetime

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Coalesce

from annotation.models import Annotator, Assignment, AssignmentEvent, RoundItem, Slot

# A reply that somebody has skipped this often is no longer offered to them by itself.
SKIPS = 2

State = Assignment.State


def takeable_items(annotator: Annotator, now: datetime) -> QuerySet[RoundItem]:
    """Return the items, of any round, that an annotator could take at this moment.

    A lease that has run out counts as given back, as a claim frees it first. Left out is what is
    reserved for others, what the annotator has, has finished, declined or skipped twice, and what
    the annotator wrote.
    """
    holding = Q(state=State.SUBMITTED) | Q(state=State.ACTIVE, lease_until__gte=now)
    held = Assignment.objects.filter(holding, round_item=OuterRef("pk")).order_by()
    number_held = held.values("round_item").annotate(n=Count("id")).values("n")
    slots = Slot.objects.filter(round_item=OuterRef("pk")).order_by()
    number_of_slots = slots.values("round_item").annotate(n=Count("id")).values("n")
    own = Assignment.objects.filter(round_item=OuterRef("pk"), annotator=annotator)
    skips = AssignmentEvent.objects.filter(
        assignment=OuterRef("pk"), kind=AssignmentEvent.Kind.SKIPPED
    ).order_by()
    number_of_skips = skips.values("assignment").annotate(n=Count("id")).values("n")
    closed = own.annotate(skips=Coalesce(Subquery(number_of_skips), 0)).filter(
        Q(state__in=[State.ACTIVE, State.SUBMITTED, State.DECLINED, State.SURPLUS])
        | Q(state=State.SKIPPED, skips__gte=SKIPS)
    )
    items = RoundItem.objects.filter(
        Q(reserved_for__isnull=True) | Q(reserved_for=annotator),
        ~Exists(closed),
    ).annotate(
        n_held=Coalesce(Subquery(number_held), 0), n_slots=Coalesce(Subquery(number_of_slots), 0)
    )
    # Slots beyond a lowered overlap go when they are given back.
    free = items.filter(n_held__lt=F("round__overlap")).filter(n_held__lt=F("n_slots"))
    return _not_written_by(annotator, free)


def _not_written_by(annotator: Annotator, items: QuerySet[RoundItem]) -> QuerySet[RoundItem]:
    """Leave out replies and conversations that name the annotator among their authors.

    The list of authors is searched as JSON text, for the whole name in its quotes.
    """
    user = annotator.user
    names = {annotator.pseudonym, *([user.email, user.name] if user else [])} - {""}
    items = items.annotate(
        reply_authors=Cast("reply__authors", TextField()),
        conversation_authors=Cast("reply__conversation__authors", TextField()),
    )
    for spelling in {json.dumps(n, ensure_ascii=ascii) for n in names for ascii in (True, False)}:
        items = items.exclude(
            Q(reply_authors__contains=spelling) | Q(conversation_authors__contains=spelling)
        )
    return items

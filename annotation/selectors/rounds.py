"""How far rounds are, for the person who labels and for those who watch."""

from dataclasses import dataclass
from statistics import median

from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from annotation.models import (
    Annotator,
    Assignment,
    Round,
    RoundItem,
    RoundMember,
    Slot,
)
from annotation.selectors.waiting import takeable_items
from corpus.models import RubricItem

State = Assignment.State


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """How far one person is in one round; `seconds` is what one reply took in the middle.

    `available` is how many more replies the round would give this person now.
    """

    round: Round
    done: int
    total: int
    open_assignment: Assignment | None
    available: int
    seconds: float | None

    @property
    def duration(self) -> str:
        """Return in words how long one reply takes, or nothing where nobody knows yet."""
        if self.seconds is None:
            return ""
        minutes = max(1, round(self.seconds / 60))
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"


@dataclass(frozen=True, slots=True)
class MemberProgress:
    """How far one annotator is in a round."""

    annotator: Annotator
    is_active: bool
    submitted: int
    active: int


@dataclass(frozen=True, slots=True)
class RoundOverview:
    """How far a round is as a whole; `wanted` counts labellings, items times overlap."""

    items: int
    wanted: int
    submitted: int
    active: int
    complete: int
    members: list[MemberProgress]


def rounds_for(annotator: Annotator) -> list[RoundProgress]:
    """Return a person's rounds, those with work first; queries do not grow with the items.

    Somebody who was taken out of a round still finds it here when they have worked in it.
    """
    worked = Assignment.objects.filter(annotator=annotator, round_item__round=OuterRef("pk"))
    members = RoundMember.objects.filter(annotator=annotator, round=OuterRef("pk"), active=True)
    rounds = list(
        Round.objects.annotate(is_member=Exists(members))
        .filter(Q(is_member=True) | Exists(worked))
        .exclude(status=Round.Status.DRAFT)
        .select_related("collection")
        .order_by("-opened_at", "-id")
    )
    done: dict[int, int] = {}
    mine = Assignment.objects.filter(annotator=annotator, round_item__round__in=rounds)
    for round_id, count in (
        mine.filter(state=State.SUBMITTED)
        .order_by()
        .values_list("round_item__round_id")
        .annotate(n=Count("id"))
    ):
        done[round_id] = count
    active = {
        assignment.round_item.round_id: assignment
        for assignment in mine.filter(state=State.ACTIVE).select_related("round_item")
    }
    waiting = dict(
        takeable_items(annotator, timezone.now())
        .filter(round__in=[item for item in rounds if item.is_member])
        .order_by()
        .values_list("round_id")
        .annotate(n=Count("id"))
    )
    times: dict[int, list[int]] = {}
    for round_id, seconds in (
        mine.filter(state=State.SUBMITTED, active_seconds__gt=0)
        .order_by("-submitted_at")
        .values_list("round_item__round_id", "active_seconds")[:400]
    ):
        times.setdefault(round_id, []).append(seconds)
    found = [
        RoundProgress(
            round=item,
            done=done.get(item.pk, 0),
            total=done.get(item.pk, 0) + waiting.get(item.pk, 0) + (item.pk in active),
            open_assignment=active.get(item.pk),
            available=waiting.get(item.pk, 0) if item.status == Round.Status.OPEN else 0,
            seconds=median(times[item.pk]) if item.pk in times else None,
        )
        for item in rounds
    ]
    return sorted(found, key=lambda p: (p.round.status != Round.Status.OPEN, p.available == 0))


def submitted_by(annotator: Annotator, round_: Round) -> list[Assignment]:
    """Return what a person submitted in a round, newest first."""
    return list(
        Assignment.objects.filter(
            annotator=annotator,
            round_item__round=round_,
            state__in=[State.SUBMITTED, State.SURPLUS],
            submitted_at__isnull=False,
        ).order_by("-submitted_at", "-id")
    )


def round_overview(round_: Round) -> RoundOverview:
    """Return how far a round is, in total and for each annotator."""
    slots = Slot.objects.filter(round_item__round=round_)
    assignments = Assignment.objects.filter(round_item__round=round_)
    counts = assignments.aggregate(
        submitted=Count("id", filter=Q(state=State.SUBMITTED)),
        active=Count("id", filter=Q(state=State.ACTIVE)),
    )
    unfinished = Slot.objects.filter(round_item=OuterRef("pk")).exclude(
        assignments__state=State.SUBMITTED
    )
    members = RoundMember.objects.filter(round=round_).select_related("annotator__user")
    work = {
        annotator: (submitted, active)
        for annotator, submitted, active in assignments.order_by()
        .values_list("annotator_id")
        .annotate(
            submitted=Count("id", filter=Q(state=State.SUBMITTED)),
            active=Count("id", filter=Q(state=State.ACTIVE)),
        )
    }
    return RoundOverview(
        items=round_.items.count(),
        wanted=slots.count(),
        submitted=counts["submitted"],
        active=counts["active"],
        complete=RoundItem.objects.filter(~Exists(unfinished), round=round_).count(),
        members=[
            MemberProgress(
                annotator=member.annotator,
                is_active=member.active,
                submitted=work.get(member.annotator_id, (0, 0))[0],
                active=work.get(member.annotator_id, (0, 0))[1],
            )
            for member in members
        ],
    )


def dimensions_of(round_: Round) -> dict[tuple[int, int], str]:
    """Return the dimension's slug by (rubric id, criterion id) for the items of a round."""
    rows = RubricItem.objects.filter(rubric__round_items__round=round_).order_by()
    return {
        (rubric, criterion): slug
        for rubric, criterion, slug in rows.values_list(
            "rubric_id", "criterion_id", "dimension__slug"
        ).distinct()
    }

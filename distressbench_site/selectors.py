"""What waits for somebody on the start page, read across the apps."""

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from annotation.models import Assignment, Round
from corpus.models import Collection, Conversation
from distressbench_site.accounts.models import AuditEvent, User
from distressbench_site.accounts.selectors import open_invitations
from scoring.models import Calibration, Judge, Run, ScoreSet, Verdict


@dataclass(frozen=True)
class Step:
    """One station of the road from labels to results."""

    title: str
    state: str
    done: bool
    url: str
    action: str


def road() -> list[Step]:
    """Return the stations from conversations to results, with what is there already."""
    conversations = Conversation.objects.filter(status=Conversation.Status.ACTIVE).count()
    rounds = Round.objects.count()
    submitted = Assignment.objects.filter(state=Assignment.State.SUBMITTED).count()
    judges = Judge.objects.count()
    judged = Verdict.objects.exists()
    calibrations = Calibration.objects.count()
    approved = Calibration.objects.filter(decisions__decision="approve").distinct().count()
    results = ScoreSet.objects.values("collection").distinct().count()
    return [
        Step(
            "Conversations",
            f"{conversations} to use" if conversations else "an admin imports them by command",
            conversations > 0,
            reverse("collection-list"),
            "See the conversations",
        ),
        Step(
            "Labels",
            f"{_count(submitted, 'reply', 'replies')} labelled in {_count(rounds, 'round')}"
            if rounds
            else "no round yet",
            submitted > 0,
            reverse("round-list"),
            "To the rounds",
        ),
        Step(
            "Agreement",
            "read whether the clinicians agree before you trust their labels"
            if submitted
            else "needs labels first",
            submitted > 0,
            reverse("round-list"),
            "Choose a round",
        ),
        Step(
            "Judge",
            f"{_count(judges, 'judge')}, {'with' if judged else 'without'} verdicts"
            if judges
            else "train the baseline on dev labels",
            judged,
            reverse("judge-list"),
            "To the judges",
        ),
        Step(
            "Calibration",
            f"{approved} of {calibrations} approved" if calibrations else "none yet",
            approved > 0,
            reverse("judge-list"),
            "Choose a judge",
        ),
        Step(
            "Results",
            f"for {_count(results, 'collection')}" if results else "none yet",
            results > 0,
            reverse("result-list"),
            "To the results",
        ),
    ]


def rounds_in_work() -> QuerySet[Round]:
    """Return the open and paused rounds with how many of their places are taken and done."""
    return (
        Round.objects.filter(status__in=[Round.Status.OPEN, Round.Status.PAUSED])
        .select_related("collection")
        .annotate(
            places=Count("items__slots", distinct=True),
            submitted=Count(
                "items__assignments",
                filter=Q(items__assignments__state=Assignment.State.SUBMITTED),
                distinct=True,
            ),
        )
    )


def runs_in_work() -> QuerySet[Run]:
    """Return the runs that are not over."""
    return Run.objects.exclude(status__in=[Run.Status.DONE, Run.Status.CANCELLED]).select_related(
        "judge", "collection"
    )


def undecided_calibrations() -> QuerySet[Calibration]:
    """Return the calibrations about which nobody has decided, newest first."""
    return (
        Calibration.objects.filter(decisions__isnull=True)
        .select_related("judge", "split__collection")
        .defer("metrics", "parameters", "judge__artifact", "judge__prompt")
        .order_by("-id")
    )


@dataclass(frozen=True)
class Administration:
    """What an admin looks after."""

    people: int
    without_role: int
    invitations: int
    collections: list[Collection]
    last_acts: list[AuditEvent]


def administration() -> Administration:
    """Return the state of people, collections and the audit log in brief."""
    active = User.objects.filter(is_active=True)
    return Administration(
        people=active.count(),
        without_role=active.filter(groups__isnull=True, is_superuser=False).count(),
        invitations=open_invitations().count(),
        collections=list(Collection.objects.annotate(size=Count("conversations")).order_by("slug")),
        last_acts=list(AuditEvent.objects.select_related("actor").order_by("-id")[:5]),
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"

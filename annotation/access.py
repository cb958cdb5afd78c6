"""Who may reach which round and which assignment."""

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, QuerySet
from django.http import Http404

from annotation.models import Annotator, Assignment, Round, RoundMember
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import (
    ADMIN,
    CLINICIAN,
    RESEARCHER,
    SENIOR_CLINICIAN,
    has_role,
)


def annotator_of(user: User) -> Annotator | None:
    """Return the annotator of an account, if there is one yet."""
    return Annotator.objects.filter(user=user).first()


def assignment_for(user: User, pk: int) -> Assignment:
    """Return a person's own assignment; anybody else's does not exist for them."""
    _require(user, CLINICIAN, SENIOR_CLINICIAN)
    found = (
        Assignment.objects.filter(pk=pk, annotator__user=user)
        .select_related(
            "annotator",
            "round_item__round",
            "round_item__rubric",
            "round_item__reply__conversation__collection",
            "round_item__reply__conversation__subcategory",
        )
        .first()
    )
    if found is None:
        raise Http404("There is no such reply among yours.")
    return found


def round_for_labelling(user: User, pk: int) -> Round:
    """Return a round that a person labels in, or has worked in."""
    _require(user, CLINICIAN, SENIOR_CLINICIAN)
    members = RoundMember.objects.filter(round=pk, annotator__user=user, active=True)
    worked = Assignment.objects.filter(round_item__round=pk, annotator__user=user)
    found = (
        Round.objects.filter(Exists(members) | Exists(worked), pk=pk)
        .exclude(status=Round.Status.DRAFT)
        .select_related("collection")
        .first()
    )
    if found is None:
        raise Http404("There is no such round among yours.")
    return found


def round_for_research(user: User, pk: int) -> Round:
    """Return any round, for those who may read all of them."""
    found = rounds_visible_to(user).select_related("collection").filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such round.")
    return found


def rounds_visible_to(user: User) -> QuerySet[Round]:
    """Return the rounds that a person may read as a whole."""
    _require(user, RESEARCHER, ADMIN)
    return Round.objects.all()


def _require(user: User, *roles: str) -> None:
    if not has_role(user, *roles):
        raise PermissionDenied("This page needs the role " + " or ".join(roles) + ".")

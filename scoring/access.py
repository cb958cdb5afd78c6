"""Who may see which judge, run, calibration and result; strangers get 404, wrong roles 403."""

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from corpus.models import Collection
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import ADMIN, RESEARCHER, has_role
from scoring.models import Calibration, Judge, Run

Person = User | AnonymousUser


def require_researcher(user: Person) -> None:
    """Refuse people who neither research nor administer."""
    if not has_role(user, RESEARCHER, ADMIN):
        raise PermissionDenied("This page needs the role researcher or admin.")


def judges_for(user: Person) -> QuerySet[Judge]:
    """Return the judges, without their artifacts."""
    require_researcher(user)
    return Judge.objects.defer("artifact").order_by("name", "-version")


def judge_for(user: Person, pk: int) -> Judge:
    """Return one judge."""
    return get_object_or_404(judges_for(user), pk=pk)


def runs_for(user: Person) -> QuerySet[Run]:
    """Return the runs, newest first."""
    require_researcher(user)
    return Run.objects.select_related("judge", "collection", "created_by").defer("judge__artifact")


def run_for(user: Person, pk: int) -> Run:
    """Return one run."""
    return get_object_or_404(runs_for(user), pk=pk)


def calibrations_for(user: Person) -> QuerySet[Calibration]:
    """Return the calibrations, newest first."""
    require_researcher(user)
    return (
        Calibration.objects.select_related("judge", "split__collection", "created_by")
        .defer("judge__artifact")
        .prefetch_related("decisions__decided_by")
        .order_by("-id")
    )


def calibration_for(user: Person, pk: int) -> Calibration:
    """Return one calibration."""
    return get_object_or_404(calibrations_for(user), pk=pk)


def result_collections_for(user: Person) -> QuerySet[Collection]:
    """Return the collections whose results a person may read."""
    require_researcher(user)
    return Collection.objects.order_by("slug")


def result_collection_for(user: Person, slug: str) -> Collection:
    """Return one collection whose results a person may read."""
    return get_object_or_404(result_collections_for(user), slug=slug)

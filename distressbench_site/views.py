"""Role homes and the few pages that belong to no app."""

import sys
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.db import OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from distressbench_site import middleware, selectors
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import (
    ADMIN,
    CLINICIAN,
    RESEARCHER,
    SENIOR_CLINICIAN,
    current_user,
    roles_of,
)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Send a person to the place where their work starts, or show what waits for them."""
    roles = roles_of(current_user(request))
    if roles and roles <= {CLINICIAN, SENIOR_CLINICIAN}:
        return redirect("labelling-home")
    context: dict[str, Any] = {"is_clinician": bool(roles & {CLINICIAN, SENIOR_CLINICIAN})}
    if not roles:
        admins = User.objects.filter(is_active=True, groups__name=ADMIN)
        context["admins"] = admins.order_by("name", "email")
        return render(request, "home_without_role.html", context)
    if roles & {RESEARCHER, ADMIN}:
        context["road"] = selectors.road()
        context["rounds"] = selectors.rounds_in_work()
        context["runs"] = selectors.runs_in_work()
        context["undecided"] = selectors.undecided_calibrations()
    if ADMIN in roles:
        context["administration"] = selectors.administration()
    return render(request, "home.html", context)


@require_safe
def method(request: HttpRequest) -> HttpResponse:
    """Explain each number in plain words, with its source."""
    return render(request, "method.html")


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer whether the program and its database are up."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok", content_type="text/plain")


def server_error(request: HttpRequest) -> HttpResponse:
    """Say that something failed here; a busy database may show as late as a session is saved."""
    if isinstance(sys.exc_info()[1], OperationalError):
        return middleware.busy_response()
    return middleware.calm_page("500.html", status=500)

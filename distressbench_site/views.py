"""Role homes and the few pages that belong to no app."""

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from distressbench_site.accounts.roles import CLINICIAN, SENIOR_CLINICIAN, current_user, roles_of


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Send a person to the place where their work starts."""
    roles = roles_of(current_user(request))
    if roles <= {CLINICIAN, SENIOR_CLINICIAN} and roles:
        return redirect("labelling-home")
    return render(request, "home.html")


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

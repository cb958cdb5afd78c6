"""Judges: what they are, what they were trained on, what they did."""

from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from corpus.access import READERS
from distressbench_site.accounts.roles import current_user, role_required
from scoring import services
from scoring.access import judge_for, judges_for, runs_for
from scoring.forms import BaselineForm, rounds_with_labels
from scoring.models import Judge
from scoring.selectors.listings import calibrations_of, judge_rows, run_rows

RUNS_SHOWN = 20


@require_safe
@role_required(*READERS)
def judge_list(request: HttpRequest) -> HttpResponse:
    """List the judges."""
    rows = judge_rows(judges_for(current_user(request)))
    return render(request, "scoring/judge_list.html", {"rows": rows})


@require_http_methods(["GET", "HEAD", "POST"])
@role_required(*READERS)
def baseline_train(request: HttpRequest) -> HttpResponse:
    """Train the built-in baseline on labels of chosen rounds."""
    initial = {"collection": request.GET.get("collection")}
    form = BaselineForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            judge = services.train_baseline(
                collection=form.cleaned_data["collection"],
                rounds=form.cleaned_data["rounds"],
                actor=current_user(request),
            )
            return redirect("judge-detail", judge.pk)
        except ValidationError as error:
            form.add_error(None, error)
    context = {
        "form": form,
        "any_round": rounds_with_labels().exists(),
        "crumbs": [{"url": reverse("judge-list"), "label": "Judges"}],
    }
    status = 422 if form.errors else 200
    return render(request, "scoring/baseline_train.html", context, status=status)


@require_safe
@role_required(*READERS)
def judge_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one judge with its configuration, runs and calibrations."""
    user = current_user(request)
    judge = judge_for(user, pk)
    calibrations = list(calibrations_of(judge))
    for calibration in calibrations:
        decisions = list(calibration.decisions.all())
        calibration.newest = decisions[-1] if decisions else None  # type: ignore[attr-defined]
    context = {
        "judge": judge,
        "is_baseline": judge.kind == Judge.Kind.BASELINE,
        "trained_on": judge.params.get("trained_on") or {},
        "settings": _settings(judge),
        "runs": run_rows(runs_for(user).filter(judge=judge)[:RUNS_SHOWN]),
        "calibrations": calibrations,
        "crumbs": [{"url": reverse("judge-list"), "label": "Judges"}],
    }
    return render(request, "scoring/judge_detail.html", context)


def _settings(judge: Judge) -> list[tuple[str, Any]]:
    """Return what the judge was set to, flat, without what it was trained on."""
    params = {name: value for name, value in judge.params.items() if name != "trained_on"}
    flat = {**params.pop("hyperparameters", {}), **params}
    words = {True: "yes", False: "no"}
    return [
        (name.replace("_", " ").capitalize(), words[value] if isinstance(value, bool) else value)
        for name, value in sorted(flat.items())
    ]

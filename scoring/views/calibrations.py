"""Calibrations: measure a judge against clinicians, read what it is worth, decide."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.wording import alpha_words, number
from corpus.access import READERS
from distressbench_site.accounts.roles import current_user, role_required
from scoring import services
from scoring.access import calibration_for, judge_for
from scoring.forms import CalibrationForm, DecisionForm, rounds_with_labels
from scoring.models import Calibration, Judge
from scoring.selectors import calibration_status
from scoring.views.showing import (
    PERCENT_AXIS,
    UNIT_AXIS,
    Shown,
    estimate_of,
    short,
    show,
    show_percent,
    whole_percent,
)


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of the judge beside the clinicians."""

    name: str
    is_judge: bool
    macro_f1: Shown
    units: int


@dataclass(frozen=True, slots=True)
class DimensionRow:
    """What the judge is worth in one dimension."""

    name: str
    units: int
    sensitivity: Shown
    specificity: Shown
    macro_f1: Shown
    counts: dict[str, int]


@require_http_methods(["GET", "HEAD", "POST"])
@role_required(*READERS)
def calibration_create(request: HttpRequest, pk: int) -> HttpResponse:
    """Measure a judge against the labels of chosen rounds."""
    user = current_user(request)
    judge = judge_for(user, pk)
    form = CalibrationForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            calibration = services.calibrate(
                judge=judge,
                rounds=form.cleaned_data["rounds"],
                reason=form.cleaned_data["reason"],
                targets={"text": form.cleaned_data["targets"]},
                actor=user,
            )
            return redirect("calibration-detail", calibration.pk)
        except ValidationError as error:
            form.add_error(None, error)
    context = {
        "judge": judge,
        "form": form,
        "any_round": rounds_with_labels().exists(),
        "crumbs": _crumbs(judge),
    }
    status = 422 if form.errors else 200
    return render(request, "scoring/calibration_create.html", context, status=status)


@require_safe
@role_required(*READERS)
def calibration_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what a judge's verdicts are worth."""
    calibration = calibration_for(current_user(request), pk)
    return _report(request, calibration, DecisionForm())


@require_POST
@role_required(*READERS)
def calibration_decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Approve or reject a calibration with a reason."""
    user = current_user(request)
    calibration = calibration_for(user, pk)
    form = DecisionForm(request.POST)
    if form.is_valid():
        try:
            services.decide_calibration(
                calibration=calibration,
                decision=form.cleaned_data["decision"],
                reason=form.cleaned_data["reason"],
                actor=user,
            )
            return redirect("calibration-detail", calibration.pk)
        except ValidationError as error:
            form.add_error(None, error)
    return _report(request, calibration, form, status=422)


def _report(
    request: HttpRequest, calibration: Calibration, form: DecisionForm, status: int = 200
) -> HttpResponse:
    metrics = calibration.metrics
    overall = metrics["overall"]
    collection = calibration.split.collection
    names = dict(collection.dimensions.order_by("position").values_list("slug", "name"))
    alpha = (metrics.get("agreement") or {}).get("alpha")
    opening = calibration.split.openings.filter(
        number=calibration.parameters.get("opening")
    ).first()
    context = {
        "calibration": calibration,
        "judge": calibration.judge,
        "is_baseline": calibration.judge.kind == Judge.Kind.BASELINE,
        "collection": collection,
        "status": calibration_status(calibration),
        "overall": overall,
        "sensitivity": show_percent(overall["sensitivity"]),
        "specificity": show_percent(overall["specificity"]),
        "macro_f1": show(overall["macro_f1"]),
        "alpha": show(alpha),
        "alpha_words": alpha_words(estimate_of(alpha)),
        "constant": _constant(metrics),
        "accuracy": show_percent(overall["accuracy"]),
        "standing": _standing(calibration, metrics),
        "place": (metrics.get("standing") or {}).get("place"),
        "standing_axis": UNIT_AXIS,
        "dimension_axis": PERCENT_AXIS,
        "dimensions": [
            _dimension(names.get(slug, slug), panel)
            for slug, panel in _in_order(metrics["dimensions"], list(names))
        ],
        "opening": opening,
        "outdated": calibration.parameters.get("n_outdated", 0),
        "decisions": calibration.decisions.select_related("decided_by").order_by("-pk"),
        "form": form,
        "crumbs": _crumbs(calibration.judge),
        "ruler": _ruler(calibration),
    }
    return render(request, "scoring/calibration_detail.html", context, status=status)


def _crumbs(judge: Judge) -> list[dict[str, str]]:
    return [
        {"url": reverse("judge-list"), "label": "Judges"},
        {"url": reverse("judge-detail", args=[judge.pk]), "label": str(judge)},
    ]


def _in_order(panels: Mapping[str, Any], slugs: list[str]) -> list[tuple[str, Mapping[str, Any]]]:
    known = [slug for slug in slugs if slug in panels]
    return [(slug, panels[slug]) for slug in [*known, *(s for s in panels if s not in slugs)]]


def _dimension(name: str, panel: Mapping[str, Any]) -> DimensionRow:
    return DimensionRow(
        name=name,
        units=panel["n_units"],
        sensitivity=show_percent(panel["sensitivity"], PERCENT_AXIS),
        specificity=show_percent(panel["specificity"], PERCENT_AXIS),
        macro_f1=show(panel["macro_f1"]),
        counts={name: panel[name] for name in ("tp", "fp", "fn", "tn")},
    )


def _standing(calibration: Calibration, metrics: Mapping[str, Any]) -> list[Standing]:
    """Return the judge first, then the clinicians by their macro-F1 against the others."""
    stored = metrics.get("standing") or {}
    if not stored:
        return []
    judge = stored["judge"]
    rows = [
        Standing(str(calibration.judge), True, show(judge["macro_f1"], UNIT_AXIS), judge["n_units"])
    ]
    clinicians = sorted(
        stored["clinicians"], key=lambda c: (-(c["macro_f1"]["value"] or -1), c["annotator"])
    )
    return rows + [
        Standing(c["annotator"], False, show(c["macro_f1"], UNIT_AXIS), c["n_units"])
        for c in clinicians
    ]


def _constant(metrics: Mapping[str, Any]) -> dict[str, str] | None:
    stored = metrics.get("constant")
    if not stored:
        return None
    f1 = stored["macro_f1"]
    return {
        "answer": "met" if stored["met"] else "not met",
        "accuracy": whole_percent(stored["accuracy"]),
        "macro_f1": "" if f1 is None else number(f1),
    }


def _ruler(calibration: Calibration) -> list[str]:
    return [
        f"Calibration {calibration.number}, {short(calibration.digest)}",
        f"Judge {calibration.judge}, {short(calibration.judge.digest)}",
        f"Labels {short(calibration.labels_digest)}, up to event {calibration.label_events_used}",
        f"Criteria {short(calibration.parameters.get('texts_digest', ''))}",
        f"Seed {calibration.parameters.get('seed', 0)}",
    ]

"""What a clinician sees: the rounds, one reply with its criteria, each answer kept at once."""

import json
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from annotation import access, selectors, services
from annotation.forms import DeclineForm, LabelForm
from annotation.guidelines import render_guidelines
from annotation.models import Assignment
from annotation.views import page
from distressbench_site.accounts.roles import (
    CLINICIAN,
    SENIOR_CLINICIAN,
    current_user,
    role_required,
)

labeller_required = role_required(CLINICIAN, SENIOR_CLINICIAN)


def words_of(error: ValidationError) -> str:
    """Return what a service refused, as one sentence."""
    return " ".join(error.messages)


@never_cache
@require_safe
@labeller_required
def labelling_home(request: HttpRequest) -> HttpResponse:
    """Show my rounds, how far each is, and the way on."""
    annotator = access.annotator_of(current_user(request))
    rounds = selectors.rounds_for(annotator) if annotator else []
    context = {
        "rounds": page.with_durations(rounds),
        "submitted": sum(item.done for item in rounds),
    }
    return render(request, "annotation/labelling_home.html", context)


def _round_page(request: HttpRequest, pk: int, *, nothing_left: bool) -> HttpResponse:
    round_ = access.round_for_labelling(current_user(request), pk)
    annotator = services.annotator_for(user=current_user(request))
    progress = next(item for item in selectors.rounds_for(annotator) if item.round.pk == pk)
    context = {
        "round": round_,
        "progress": progress,
        "nothing_left": nothing_left,
        "explanation": page.why_nothing_left(progress),
        "submitted": selectors.submitted_by(annotator, round_),
        "guidelines": render_guidelines(round_.guidelines),
        "crumbs": [{"url": reverse("labelling-home"), "label": "My rounds"}],
    }
    return render(request, "annotation/labelling_round.html", context)


@never_cache
@require_safe
@labeller_required
def labelling_round(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what I submitted in a round, or that nothing is left in it."""
    return _round_page(request, pk, nothing_left="left" in request.GET)


def _go_on(request: HttpRequest, round_id: int) -> HttpResponse:
    """Take the next reply and open it; where there is none, say so calmly."""
    annotator = services.annotator_for(user=current_user(request))
    nothing_left = redirect(reverse("labelling-round", args=[round_id]) + "?left=0")
    try:
        assignment = services.claim_next(round_id=round_id, annotator=annotator)
    except ValidationError as error:
        messages.info(request, words_of(error))
        return nothing_left
    return redirect("assignment-detail", assignment.pk) if assignment else nothing_left


@require_POST
@labeller_required
def labelling_next(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the next reply of a round."""
    access.round_for_labelling(current_user(request), pk)
    return _go_on(request, pk)


def _assignment_page(
    request: HttpRequest, assignment: Assignment, status: int = 200, **extra: Any
) -> HttpResponse:
    context = page.assignment_context(assignment) | {"decline_form": DeclineForm()} | extra
    return render(request, "annotation/assignment_detail.html", context, status=status)


@never_cache
@require_safe
@labeller_required
def assignment_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a reply in its conversation beside the criteria."""
    assignment = access.assignment_for(current_user(request), pk)
    return _assignment_page(request, assignment)


@never_cache
@require_POST
@labeller_required
def label_save(request: HttpRequest, pk: int, criterion_id: int) -> HttpResponse:
    """Keep one answer, and say that it is kept only when it is."""
    assignment = access.assignment_for(current_user(request), pk)
    form = LabelForm(request.POST)
    problem = ""
    if form.is_valid():
        try:
            page.keep(assignment, criterion_id, form.cleaned_data)
        except ValidationError as error:
            problem = words_of(error)
    else:
        problem = "; ".join(str(message) for errors in form.errors.values() for message in errors)
    if not getattr(request, "htmx", False):
        if problem:
            return _assignment_page(request, assignment, status=422, refused=problem)
        anchor = reverse("assignment-detail", args=[pk]) + f"#criterion-{criterion_id}"
        return redirect(anchor)
    assignment.refresh_from_db()
    context = page.saved_context(assignment, criterion_id, problem)
    response = render(
        request, "annotation/_label_saved.html", context, status=422 if problem else 200
    )
    response["HX-Trigger"] = json.dumps({"announce": context["announcement"]})
    return response


# A lapsed session is said as 401, so that the page keeps the answer and sends it again.
label_save.answers_401 = True  # type: ignore[attr-defined]


@require_POST
@labeller_required
def assignment_submit(request: HttpRequest, pk: int) -> HttpResponse:
    """Submit a finished reply and go straight on; say what is open where it is not finished."""
    assignment = access.assignment_for(current_user(request), pk)
    missing = page.open_entries(assignment)
    if missing:
        return _assignment_page(request, assignment, status=422, open_entries=missing)
    try:
        services.submit_assignment(assignment_id=pk, annotator=assignment.annotator)
    except ValidationError as error:
        return _assignment_page(request, assignment, status=422, refused=words_of(error))
    messages.success(request, "Submitted. Thank you.")
    return _go_on(request, assignment.round_item.round_id)


@require_POST
@labeller_required
def assignment_skip(request: HttpRequest, pk: int) -> HttpResponse:
    """Put a reply aside; it comes last."""
    assignment = access.assignment_for(current_user(request), pk)
    try:
        services.skip_assignment(assignment_id=pk, annotator=assignment.annotator)
    except ValidationError as error:
        return _assignment_page(request, assignment, status=422, refused=words_of(error))
    return _go_on(request, assignment.round_item.round_id)


@require_POST
@labeller_required
def assignment_decline(request: HttpRequest, pk: int) -> HttpResponse:
    """Leave a reply to others, without having to say why."""
    assignment = access.assignment_for(current_user(request), pk)
    form = DeclineForm(request.POST)
    if not form.is_valid():
        return _assignment_page(request, assignment, status=422, decline_form=form)
    try:
        services.decline_assignment(
            assignment_id=pk, annotator=assignment.annotator, reason=form.cleaned_data["reason"]
        )
    except ValidationError as error:
        return _assignment_page(request, assignment, status=422, refused=words_of(error))
    messages.info(request, "That is all right. It goes to somebody else.")
    return _go_on(request, assignment.round_item.round_id)


@require_POST
@labeller_required
def assignment_reopen(request: HttpRequest, pk: int) -> HttpResponse:
    """Open submitted answers again while the round is open."""
    assignment = access.assignment_for(current_user(request), pk)
    try:
        services.reopen_assignment(assignment_id=pk, annotator=assignment.annotator)
    except ValidationError as error:
        return _assignment_page(request, assignment, status=422, refused=words_of(error))
    return redirect("assignment-detail", pk)

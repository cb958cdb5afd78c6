"""Runs: start one, watch it, steer it."""

import logging
from collections.abc import Callable
from typing import Any

from celery.exceptions import OperationalError as BrokerError
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import trigger_client_event

from annotation.wording import duration_words
from corpus.access import READERS
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import current_user, role_required
from scoring import services, tasks
from scoring.access import run_for, runs_for
from scoring.forms import RunForm
from scoring.models import Judge, Run
from scoring.selectors import run_progress
from scoring.selectors.listings import run_outcome, run_rows

logger = logging.getLogger(__name__)

RUNS_PER_PAGE = 50
# htmx stops polling when it gets this status.
STOP_POLLING = 286


@require_safe
@role_required(*READERS)
def run_list(request: HttpRequest) -> HttpResponse:
    """List the runs, newest first."""
    page = Paginator(runs_for(current_user(request)), RUNS_PER_PAGE).get_page(
        request.GET.get("page")
    )
    context = {
        "page_obj": page,
        "rows": run_rows(page.object_list),
        "any_judge": Judge.objects.exists(),
    }
    return render(request, "scoring/run_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@role_required(*READERS)
def run_create(request: HttpRequest) -> HttpResponse:
    """Let a judge read every reply of a collection."""
    initial = {name: request.GET.get(name) for name in ("judge", "collection")}
    form = RunForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            run = services.start_run(**form.cleaned_data, actor=current_user(request))
            _wake_worker(run)
            return redirect("run-detail", run.pk)
        except ValidationError as error:
            form.add_error(None, error)
    context = {
        "form": form,
        "any_judge": Judge.objects.exists(),
        "crumbs": [{"url": reverse("run-list"), "label": "Runs"}],
    }
    return render(request, "scoring/run_create.html", context, status=422 if form.errors else 200)


@require_safe
@role_required(*READERS)
def run_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show where a run stands; htmx asks for the changing part alone until the run has ended."""
    run = run_for(current_user(request), pk)
    context = _state_of(run)
    if getattr(request, "htmx", False):
        status = 200 if context["polls"] else STOP_POLLING
        response = render(request, "scoring/_run_state.html", context, status=status)
        if not context["polls"]:
            words = f"Run {run.pk}: {run.get_status_display()}."
            trigger_client_event(response, "announce", {"value": words})
        return response
    context["crumbs"] = [{"url": reverse("run-list"), "label": "Runs"}]
    return render(request, "scoring/run_detail.html", context)


@require_POST
@role_required(*READERS)
def run_pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop handing out work."""
    return _steer(request, pk, services.pause_run)


@require_POST
@role_required(*READERS)
def run_resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a paused run go on."""
    return _steer(request, pk, services.resume_run, works=True)


@require_POST
@role_required(*READERS)
def run_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End a run for good."""
    return _steer(request, pk, services.cancel_run)


@require_POST
@role_required(*READERS)
def run_retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Let the failed replies be judged again."""
    return _steer(request, pk, services.retry_failed, works=True)


def _steer(
    request: HttpRequest, pk: int, service: Callable[..., Any], *, works: bool = False
) -> HttpResponse:
    user: User = current_user(request)
    run = run_for(user, pk)
    try:
        service(run_id=run.pk, actor=user)
    except ValidationError as error:
        # Two people steer at once, or one clicks twice: say where the run stands now.
        context = _state_of(run_for(user, pk)) | {"refusal": " ".join(error.messages)}
        context["crumbs"] = [{"url": reverse("run-list"), "label": "Runs"}]
        return render(request, "scoring/run_detail.html", context, status=422)
    if works:
        _wake_worker(run)
    messages.success(request, f"{run_for(user, pk).get_status_display().capitalize()}.")
    return redirect("run-detail", run.pk)


def _wake_worker(run: Run) -> None:
    """Tell a worker that there is work; without a broker the next sweep finds it."""
    try:
        tasks.work_run.delay_on_commit(run.pk)  # type: ignore[attr-defined]
    except BrokerError as error:
        logger.warning("no worker was woken for run %s: %s", run.pk, error)


def _state_of(run: Run) -> dict[str, Any]:
    progress = run_progress(run)
    return {
        "run": run,
        "progress": progress,
        "outcome": run_outcome(run),
        "is_baseline": run.judge is not None and run.judge.kind == Judge.Kind.BASELINE,
        "polls": run.status in (Run.Status.PENDING, Run.Status.RUNNING),
        "pausable": run.status in (Run.Status.PENDING, Run.Status.RUNNING),
        "resumable": run.status == Run.Status.PAUSED,
        "cancellable": not progress.ended,
        "retriable": progress.failed > 0 and run.status != Run.Status.CANCELLED,
        "time_left": duration_words(progress.seconds_left),
        "rate": None if progress.per_minute is None else round(progress.per_minute),
    }

"""Rounds as researchers see them: set up, watched, opened, paused, closed."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation import access, selectors, services
from annotation.forms import MemberForm, OverlapForm, RoundForm
from annotation.guidelines import render_guidelines
from annotation.models import Annotator, Assignment, Round, RoundItem, Slot
from corpus.models import Collection, Rubric
from distressbench_site.accounts.roles import ADMIN, RESEARCHER, current_user, role_required

researcher_required = role_required(RESEARCHER, ADMIN)
PER_PAGE = 50


def crumbs(*rounds: Round) -> list[dict[str, str]]:
    """Return the way back: all rounds, and where given, the round."""
    trail = [{"url": reverse("round-list"), "label": "Rounds"}]
    trail += [{"url": reverse("round-detail", args=[r.pk]), "label": r.name} for r in rounds]
    return trail


def _count(rows: QuerySet[Any]) -> Subquery:
    """Return the number of rows as a column; rows of several tables would multiply in a join."""
    counted = rows.order_by().annotate(n=Func(F("pk"), function="COUNT")).values("n")
    return Subquery(counted, output_field=IntegerField())


@require_safe
@researcher_required
def round_list(request: HttpRequest) -> HttpResponse:
    """List every round with how far it is."""
    rounds = access.rounds_visible_to(current_user(request)).select_related("collection")
    counted = rounds.annotate(
        n_items=_count(RoundItem.objects.filter(round=OuterRef("pk"))),
        n_wanted=_count(Slot.objects.filter(round_item__round=OuterRef("pk"))),
        n_submitted=_count(
            Assignment.objects.filter(
                round_item__round=OuterRef("pk"), state=Assignment.State.SUBMITTED
            )
        ),
    )
    page = Paginator(counted, PER_PAGE).get_page(request.GET.get("page"))
    context = {"rounds": page, "page_obj": page}
    return render(request, "annotation/round_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@researcher_required
def round_create(request: HttpRequest) -> HttpResponse:
    """Set up a round on replies of one collection."""
    collections = list(
        Collection.objects.filter(
            conversations__replies__isnull=False,
            conversations__rubrics__status=Rubric.Status.PUBLISHED,
        ).distinct()
    )
    wanted = request.GET.get("collection")
    collection = next((item for item in collections if item.slug == wanted), None)
    if wanted and collection is None:
        raise Http404("There is no such collection with replies to label.")
    collection = collection or next(iter(collections), None)
    form = RoundForm(request.POST or None, collection=collection) if collection else None
    if request.method == "POST" and form and form.is_valid():
        try:
            made = _make_round(form, request)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, "The round is a draft. Open it when it is ready.")
            return redirect("round-detail", made.pk)
    context = {
        "collections": collections,
        "collection": collection,
        "form": form,
        "crumbs": crumbs(),
    }
    status = 422 if form and form.errors else 200
    return render(request, "annotation/round_create.html", context, status=status)


def _make_round(form: RoundForm, request: HttpRequest) -> Round:
    chosen = form.cleaned_data
    return services.create_round(
        collection=form.collection,
        name=chosen["name"],
        purpose=chosen["purpose"],
        guidelines=chosen["guidelines"],
        overlap=chosen["overlap"],
        replies=chosen["replies"],
        annotators=[services.annotator_for(user=person) for person in chosen["people"]],
        created_by=current_user(request),
    )


def _round_page(
    request: HttpRequest, round_: Round, status: int = 200, **extra: Any
) -> HttpResponse:
    context = {
        "round": round_,
        "overview": selectors.round_overview(round_),
        "guidelines": render_guidelines(round_.guidelines),
        "overlap_form": OverlapForm(initial={"overlap": round_.overlap}),
        "member_form": MemberForm(round_=round_),
        "crumbs": crumbs(),
        "facts": [f"Collection {round_.collection.name}", f"Order by seed {round_.seed}"],
    }
    return render(request, "annotation/round_detail.html", context | extra, status=status)


@require_safe
@researcher_required
def round_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show how far a round is, in total and for each clinician."""
    return _round_page(request, access.round_for_research(current_user(request), pk))


def _change(
    request: HttpRequest, pk: int, service: Callable[..., object], said: str, **what: Any
) -> HttpResponse:
    """Do one thing to a round and show it; what is refused is said with 422."""
    actor = current_user(request)
    round_ = access.round_for_research(actor, pk)
    try:
        service(round_id=pk, actor=actor, **what)
    except ValidationError as error:
        round_.refresh_from_db()
        return _round_page(request, round_, status=422, refused=" ".join(error.messages))
    messages.success(request, said)
    return redirect("round-detail", pk)


@require_POST
@researcher_required
def round_open(request: HttpRequest, pk: int) -> HttpResponse:
    """Open a round, so that it hands out replies."""
    return _change(
        request,
        pk,
        services.open_round,
        "The round is open. Its clinicians find it under “My rounds”.",
    )


@require_POST
@researcher_required
def round_pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Pause a round; what was answered stays."""
    return _change(
        request,
        pk,
        services.pause_round,
        "The round is paused. It hands out nothing until it is opened again.",
    )


@require_POST
@researcher_required
def round_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Close a round for good."""
    return _change(request, pk, services.close_round, "The round is closed.")


@require_POST
@researcher_required
def round_overlap(request: HttpRequest, pk: int) -> HttpResponse:
    """Change how many people label each reply."""
    round_ = access.round_for_research(current_user(request), pk)
    form = OverlapForm(request.POST)
    if not form.is_valid():
        return _round_page(request, round_, status=422, overlap_form=form)
    overlap = form.cleaned_data["overlap"]
    return _change(request, pk, services.set_overlap, "Changed.", overlap=overlap)


@require_POST
@researcher_required
def round_member_add(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a clinician label in a round."""
    round_ = access.round_for_research(current_user(request), pk)
    form = MemberForm(request.POST, round_=round_)
    if not form.is_valid():
        return _round_page(request, round_, status=422, member_form=form)
    annotator = services.annotator_for(user=form.cleaned_data["person"])
    said = f"{annotator.pseudonym} may label here now."
    return _change(request, pk, services.add_member, said, annotator=annotator)


@require_POST
@researcher_required
def round_member_remove(request: HttpRequest, pk: int, annotator_id: int) -> HttpResponse:
    """Let a clinician label in a round no longer; what they submitted stays."""
    access.round_for_research(current_user(request), pk)
    annotator = get_object_or_404(Annotator, pk=annotator_id, memberships__round_id=pk)
    said = f"{annotator.pseudonym} labels here no longer. What was submitted stays."
    return _change(request, pk, services.remove_member, said, annotator=annotator)

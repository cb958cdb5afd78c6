"""Leaderboards: who delivers how much of the required care."""

import csv
from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from corpus.access import READERS
from corpus.csv_cells import neutralised
from corpus.models import Collection
from distressbench_site.accounts.roles import current_user, role_required
from scoring.access import result_collection_for, result_collections_for
from scoring.models import Judge, ScoreSet
from scoring.selectors import calibration_status, leaderboards
from scoring.selectors.listings import ResultState, result_states
from scoring.views.board import HIGH, LOW, board_of


@require_safe
@role_required(*READERS)
def result_list(request: HttpRequest) -> HttpResponse:
    """Show for each collection the leaderboards there are, or what is missing for one."""
    states = result_states(result_collections_for(current_user(request)))
    cards = [{"state": state, "next": _next_step(state)} for state in states]
    return render(request, "scoring/result_list.html", {"cards": cards})


@require_safe
@role_required(*READERS)
def leaderboard(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one collection's leaderboard by one judge."""
    collection = result_collection_for(current_user(request), slug)
    boards = leaderboards(collection)
    crumbs = [{"url": reverse("result-list"), "label": "Results"}]
    context = {"collection": collection, "boards": boards, "crumbs": crumbs}
    if not boards:
        state = result_states(Collection.objects.filter(pk=collection.pk))[0]
        context["next"] = _next_step(state)
        return render(request, "scoring/leaderboard_empty.html", context)
    chosen = _chosen(request, boards)
    calibration = chosen.calibration
    context |= {
        "score_set": chosen,
        "judge": chosen.judge,
        "is_baseline": chosen.judge.kind == Judge.Kind.BASELINE,
        "calibration": calibration,
        "status": calibration_status(calibration) if calibration else None,
        "board": board_of(chosen.payload),
        "high": f"{100 * HIGH:.0f}",
        "low": f"{100 * LOW:.0f}",
    }
    return render(request, "scoring/leaderboard.html", context)


@require_safe
@role_required(*READERS)
def leaderboard_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the leaderboard as a table of plain numbers, with its ruler in each row."""
    collection = result_collection_for(current_user(request), slug)
    chosen = _chosen(request, leaderboards(collection))
    payload = chosen.payload
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"leaderboard-{collection.slug}-{payload['judge']}-v{payload['judge_version']}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    slugs = [dimension["slug"] for dimension in payload["dimensions"]]
    writer = csv.writer(response)
    writer.writerow(
        ["respondent", "name", "kind", *_headings("score"), *_headings("pooled")]
        + [heading for slug in slugs for heading in _headings(slug)]
        + [*_headings("saw_it_did_not_route"), "numerator", "denominator", "open"]
        + [*_headings("none_met"), "refusal_rate"]
        + ["missing_weight", "bound_low", "bound_high", "conversations", "replies", "unscored"]
        + ["judge", "judge_version", "approved", "ruler"]
    )
    for row in payload["rows"]:
        routing = row["routing"] or {}
        headline, none_met = routing.get("any_not_met") or {}, routing.get("none_met") or {}
        dimensions = [row["dimensions"].get(slug, {}).get("score") for slug in slugs]
        bounds = row["bounds"] or [None, None]
        writer.writerow(
            [neutralised(value) for value in (row["respondent"], row["name"], row["kind"])]
            + [*_numbers(row["score"]), *_numbers(row["pooled"])]
            + [number for score in dimensions for number in _numbers(score)]
            + _numbers(headline.get("rate"))
            + [headline.get(name) for name in ("numerator", "denominator", "open")]
            + [*_numbers(none_met.get("rate")), row["refusal_rate"]]
            + [row["missing_weight"], *bounds]
            + [row[name] for name in ("n_conversations", "n_replies", "n_unscored")]
            + [payload["judge"], payload["judge_version"], payload["approved"], payload["ruler"]]
        )
    return response


def _headings(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high", f"{name}_reason"]


def _numbers(stored: Mapping[str, Any] | None) -> list[Any]:
    """Return an estimate as it stands under its headings; empty where there is none."""
    return [(stored or {}).get(part) for part in ("value", "low", "high", "reason")]


def _chosen(request: HttpRequest, boards: list[ScoreSet]) -> ScoreSet:
    """Return the scores by the judge that was asked for, else the first."""
    wanted = request.GET.get("judge", "")
    found = [board for board in boards if not wanted or str(board.judge_id) == wanted]
    if not found:
        raise Http404("This judge has no scores here.")
    return found[0]


def _next_step(state: ResultState) -> dict[str, str]:
    """Say what is missing on the way to a leaderboard, and where to do it."""
    summary = state.summary
    if not summary.conversations:
        return {"text": "It is empty. An admin imports conversations with manage.py import_corpus."}
    if not summary.replies:
        return {"text": "There are no replies to judge yet. They come with an import."}
    if state.run is not None:
        url = reverse("run-detail", args=[state.run.pk])
        return {"text": "A judge is reading the replies.", "url": url, "action": "Watch the run"}
    if state.any_judge and not state.boards:
        text = "No judge has read its replies yet."
        url = f"{reverse('run-create')}?collection={summary.collection.pk}"
        return {"text": text, "url": url, "action": "Start a run"}
    if not state.rounds:
        text = "No clinician has labelled its replies yet, so nothing says what a judge is worth."
        return {"text": text, "url": reverse("round-create"), "action": "Create a round"}
    if not state.submitted:
        text = "A round is there, but no reply has been labelled to the end yet."
        return {"text": text, "url": reverse("round-list"), "action": "See the rounds"}
    if not state.any_judge:
        url = f"{reverse('baseline-train')}?collection={summary.collection.pk}"
        text = "Clinicians have labelled replies. Next, a judge learns from them."
        return {"text": text, "url": url, "action": "Train the baseline"}
    if not any(board.payload["approved"] for board in state.boards):
        url = reverse("judge-detail", args=[state.boards[0].judge_id])
        text = "Scores are there, but no calibration of their judge is approved."
        return {"text": text, "url": url, "action": "See the judge"}
    return {}

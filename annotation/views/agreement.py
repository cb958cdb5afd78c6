"""Whether the clinicians of a round agree, and every label to take away."""

import csv
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from annotation import access, selectors
from annotation.models import Label, Round
from annotation.selectors import AgreementReport
from annotation.views.figures import headline, row
from annotation.views.rounds import crumbs, researcher_required
from corpus.csv_cells import neutralised
from distressbench_site.accounts.roles import current_user

COLUMNS = [
    "round",
    "conversation",
    "respondent",
    "sample",
    "occurrence",
    "kind",
    "criterion",
    "criterion_text",
    "dimension",
    "annotator",
    "state",
    "value",
    "reason",
    "comment",
    "updated_at",
]


@require_safe
@researcher_required
def round_agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the agreement of a round, overall and by dimension."""
    round_ = access.round_for_research(current_user(request), pk)
    report = selectors.agreement_of([pk])
    rows = [row(name, panel) for _, name, panel in report.dimensions]
    context = {
        "round": round_,
        "crumbs": crumbs(round_),
        "counts": _counts(report),
        "cards": headline(report.overall),
        "rows": [*rows, row("All dimensions", report.overall, is_total=True)] if rows else [],
        "ruler": [
            f"Rubrics {short(report.rubrics_digest)}",
            f"Labels {short(report.labels_digest)}, up to event {report.last_event:,}",
            f"{report.replicates:,} replicates, seed {report.seed}",
        ],
    }
    return render(request, "annotation/round_agreement.html", context)


def short(digest: str) -> str:
    """Return the two ends of a digest, enough to tell two apart by eye."""
    return f"{digest[:4]}…{digest[-2:]}"


def _counts(report: AgreementReport) -> str:
    parts = [
        (report.n_annotators, "clinician", "clinicians"),
        (report.n_conversations, "conversation", "conversations"),
        (report.n_replies, "reply", "replies"),
        (report.overall.n_pairable, "criterion", "criteria"),
    ]
    words = [f"{number:,} {one if number == 1 else many}" for number, one, many in parts]
    return " · ".join(words) + " rated by at least two."


class _Echo:
    """A file that hands back each line instead of keeping it."""

    def write(self, line: str) -> str:
        """Return the line."""
        return line


def _lines(round_: Round) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    for cells in _rows(round_):
        yield writer.writerow([neutralised("" if cell is None else str(cell)) for cell in cells])


def _rows(round_: Round) -> Iterator[tuple[Any, ...]]:
    labels = (
        Label.objects.filter(assignment__round_item__round=round_, value__isnull=False)
        .order_by("assignment_id", "criterion_id")
        .values_list(
            "assignment__round_item__reply__conversation__key",
            "assignment__round_item__reply__respondent__slug",
            "assignment__round_item__reply__sample",
            "assignment__round_item__occurrence",
            "assignment__round_item__kind",
            "assignment__round_item__rubric_id",
            "criterion_id",
            "criterion__key",
            "criterion__text",
            "assignment__annotator__pseudonym",
            "assignment__state",
            "value",
            "reason",
            "comment",
            "updated_at",
        )
    )
    dimensions = selectors.dimensions_of(round_)
    for label in labels.iterator(chunk_size=2000):
        rubric, criterion = label[5:7]
        yield (
            round_.name,
            *label[:5],
            *label[7:9],
            dimensions.get((rubric, criterion), ""),
            *label[9:14],
            label[14].isoformat(),
        )


@require_safe
@researcher_required
def round_labels_csv(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Stream every label of a round, by pseudonym."""
    round_ = access.round_for_research(current_user(request), pk)
    response = StreamingHttpResponse(_lines(round_), content_type="text/csv; charset=utf-8")
    name = f"{slugify(round_.name) or 'round'}-labels.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response

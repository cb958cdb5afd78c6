"""The agreement of rounds, computed once for each state of their labels."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from django.core.cache import cache
from django.db.models import Q

from annotation.agreement import AgreementPanel, agreement_panel, rating_matrix, unit_counts
from annotation.models import LabelEvent, RoundItem
from annotation.selectors.ratings import labels_digest, round_ratings
from corpus.models import Dimension, Rubric, RubricItem
from corpus.schema import digest

REPLICATES = 2000
SEED = 7
# Increase when the numbers for the same labels change.
VERSION = 1


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """The agreement of some rounds: overall, and for each dimension in its order."""

    overall: AgreementPanel
    dimensions: tuple[tuple[str, str, AgreementPanel], ...]  # slug, name, panel
    n_annotators: int
    n_replies: int
    n_conversations: int
    rubrics_digest: str
    labels_digest: str
    last_event: int
    replicates: int
    seed: int


def agreement_of(round_ids: Iterable[int]) -> AgreementReport:
    """Return the agreement on all regular, submitted answers of rounds."""
    ids = sorted(set(round_ids))
    labels = labels_digest(ids)
    rubrics = _rubrics_digest(ids)
    key = f"agreement:{VERSION}:{digest([ids, labels, rubrics, _dimension_names(ids)])}"
    report: AgreementReport | None = cache.get(key)
    if report is None:
        report = _compute(ids, labels, rubrics)
        cache.set(key, report, timeout=None)
    return report


def _compute(ids: list[int], labels: str, rubrics: str) -> AgreementReport:
    ratings = round_ratings(ids)
    matrix = rating_matrix(ratings.reply, ratings.criterion, ratings.annotator, ratings.answer)
    first = {
        (int(reply), int(criterion)): place
        for place, (reply, criterion) in enumerate(
            zip(ratings.reply, ratings.criterion, strict=True)
        )
    }
    places = np.array([first[(int(r), int(c))] for r, c in matrix.units], dtype=np.int64)
    conversation = ratings.conversation[places]
    dimension = ratings.dimension[places]
    units = unit_counts(matrix.codes, conversation)
    names = Dimension.objects.filter(pk__in=np.unique(dimension).tolist()).order_by("position")
    last = (
        LabelEvent.objects.filter(assignment__round_item__round__in=ids)
        .order_by("-id")
        .values_list("id", flat=True)
        .first()
    )
    return AgreementReport(
        overall=agreement_panel(units, np.random.default_rng(SEED), replicates=REPLICATES),
        dimensions=tuple(
            (
                item.slug,
                item.name,
                agreement_panel(
                    units.where(dimension == item.pk),
                    np.random.default_rng(SEED),
                    replicates=REPLICATES,
                ),
            )
            for item in names
        ),
        n_annotators=len(matrix.annotators),
        n_replies=len(np.unique(ratings.reply)),
        n_conversations=len(np.unique(ratings.conversation)),
        rubrics_digest=rubrics,
        labels_digest=labels,
        last_event=last or 0,
        replicates=REPLICATES,
        seed=SEED,
    )


def _rubrics_digest(ids: list[int]) -> str:
    """Return the digest of the rubrics that were asked, and of those that are published now."""
    items = RoundItem.objects.filter(round__in=ids).order_by()
    rows = RubricItem.objects.filter(
        Q(rubric__in=items.values("rubric"))
        | Q(
            rubric__status=Rubric.Status.PUBLISHED,
            rubric__conversation__in=items.values("reply__conversation"),
        )
    ).values_list(
        "rubric__conversation__key",
        "rubric__version",
        "criterion__key",
        "dimension__slug",
        "position",
    )
    return digest(sorted(list(row) for row in rows.order_by()))


def _dimension_names(ids: list[int]) -> list[list[str | int]]:
    """Return what a report shows of dimensions, which may be renamed and put in another order."""
    rows = Dimension.objects.filter(collection__rounds__in=ids).order_by("pk").distinct()
    return [list(row) for row in rows.values_list("pk", "slug", "name", "position")]

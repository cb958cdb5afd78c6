"""What scores are computed from, the ruler beside them, and the stored results."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from corpus.models import Collection, Conversation, Dimension, Reply, Respondent, RubricItem
from corpus.schema import digest
from scoring.aggregation import Verdicts
from scoring.models import Calibration, Judge, ScoreSet
from scoring.selectors.calibrations import Status
from scoring.selectors.runs import verdict_mark, verdicts_of

USED = (Conversation.Status.ACTIVE, Conversation.Status.EMBARGOED)


@dataclass(frozen=True, slots=True)
class CriterionRows:
    """One row per criterion of the published rubric of each reply, and what its keys mean."""

    verdicts: Verdicts
    multi_turn: NDArray[np.bool_]
    respondents: dict[int, Respondent]
    dimensions: dict[int, Dimension]
    # By respondent: outcomes of its replies, and the largest number of samples.
    outcomes: dict[int, list[str]]
    samples: dict[int, int]
    n_conversations: int


def criterion_rows(collection: Collection, judge: Judge) -> CriterionRows:
    """Read the published rubrics, the replies and the verdicts of draw 0."""
    by_conversation: dict[int, list[tuple[int, int, int]]] = {}
    for conversation, criterion, dimension, weight in _published(collection).values_list(
        "rubric__conversation_id", "criterion_id", "dimension_id", "weight"
    ):
        by_conversation.setdefault(conversation, []).append((criterion, dimension, weight))
    found = verdicts_of(judge, collection)
    columns: list[tuple[int, int, int, int, int, int, bool, bool, bool]] = []
    outcomes: dict[int, list[str]] = {}
    samples: dict[int, int] = {}
    per_pair: dict[tuple[int, int], int] = {}
    replies = (
        Reply.objects.filter(conversation__in=list(by_conversation))
        if len(by_conversation) < 500
        else Reply.objects.filter(conversation__collection=collection)
    )
    for reply, conversation, respondent, sample, outcome, multi in (
        replies.order_by()
        .values_list(
            "id",
            "conversation_id",
            "respondent_id",
            "sample",
            "outcome",
            "conversation__multi_turn",
        )
        .iterator(chunk_size=5000)
    ):
        rubric = by_conversation.get(conversation)
        if rubric is None:
            continue
        outcomes.setdefault(respondent, []).append(outcome)
        pair = (respondent, conversation)
        per_pair[pair] = per_pair.get(pair, 0) + 1
        samples[respondent] = max(samples.get(respondent, 0), per_pair[pair])
        for criterion, dimension, weight in rubric:
            met = found.get((reply, criterion))
            columns.append(
                (
                    respondent,
                    conversation,
                    sample,
                    criterion,
                    dimension,
                    weight,
                    bool(met),
                    met is not None,
                    multi,
                )
            )
    table = np.array(columns, dtype=np.int64).reshape(-1, 9)
    return CriterionRows(
        verdicts=Verdicts(
            respondent=table[:, 0],
            conversation=table[:, 1],
            sample=table[:, 2],
            criterion=table[:, 3],
            dimension=table[:, 4],
            weight=table[:, 5].astype(np.float64),
            met=table[:, 6].astype(np.bool_),
            judged=table[:, 7].astype(np.bool_),
        ),
        multi_turn=table[:, 8].astype(np.bool_),
        respondents=Respondent.objects.in_bulk(sorted(outcomes)),
        dimensions={d.pk: d for d in Dimension.objects.filter(collection=collection)},
        outcomes=outcomes,
        samples=samples,
        n_conversations=len(by_conversation),
    )


def ruler_parts(
    collection: Collection, judge: Judge, calibration: Calibration | None
) -> dict[str, str | None]:
    """Return the three digests that a ruler is made of."""
    rows = _published(collection).values_list(
        "rubric__conversation__key",
        "criterion__key",
        "criterion__text",
        "dimension__slug",
        "weight",
        "position",
    )
    return {
        "rubrics": digest(sorted(list(row) for row in rows)),
        "judge": judge.digest,
        "calibration": calibration.digest if calibration else None,
    }


def ruler(collection: Collection, judge: Judge, calibration: Calibration | None) -> str:
    """Return the digest of rubric set, judge and calibration; only equal rulers compare."""
    return digest(ruler_parts(collection, judge, calibration))


def watermark(
    collection: Collection, judge: Judge, calibration: Calibration | None, status: Status | None
) -> str:
    """Return the digest of what else a result depends on beyond its ruler."""
    replies = Reply.objects.filter(conversation__collection=collection).order_by()
    respondents = Respondent.objects.filter(replies__conversation__collection=collection)
    state: dict[str, Any] = {
        "verdicts": verdict_mark(judge, collection),
        # Replies are never deleted and never change.
        "replies": replies.count(),
        "conversations": sorted(
            collection.conversations.filter(status__in=USED).values_list("key", flat=True)
        ),
        "respondents": sorted(
            list(row)
            for row in respondents.distinct().values_list("slug", "name", "kind", "family")
        ),
        "dimensions": sorted(
            list(row) for row in collection.dimensions.values_list("slug", "name", "position")
        ),
        "calibration": None
        if calibration is None or status is None
        else [calibration.number, status.decision, status.stale],
    }
    return digest(state)


def score_set_for(collection: Collection, judge: Judge) -> ScoreSet | None:
    """Return the scores of a judge on a collection as they were computed last."""
    return _score_sets().filter(collection=collection, judge=judge).first()


def leaderboards(collection: Collection) -> list[ScoreSet]:
    """Return the scores computed last by each judge; approved ones first, then the newest."""
    newest: dict[int, ScoreSet] = {}
    for found in _score_sets().filter(collection=collection):
        newest.setdefault(found.judge_id, found)
    return sorted(newest.values(), key=lambda s: (not s.payload["approved"], -s.judge_id))


def _score_sets() -> QuerySet[ScoreSet]:
    return (
        ScoreSet.objects.select_related("collection", "judge", "calibration")
        .defer("judge__artifact", "calibration__metrics", "calibration__parameters")
        .order_by("-id")
    )


def _published(collection: Collection) -> QuerySet[RubricItem]:
    return RubricItem.objects.filter(
        rubric__status="published",
        rubric__conversation__collection=collection,
        rubric__conversation__status__in=USED,
    ).order_by("rubric_id", "position")

"""Submitted answers and their consensus as flat arrays."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import Max, Q, QuerySet
from numpy.typing import NDArray

from annotation.agreement import CANNOT_TELL, MET, NOT_MET, consensus
from annotation.models import Adjudication, Assignment, Label, Round, RoundItem
from corpus.models import Rubric, RubricItem
from corpus.schema import digest

IntArray = NDArray[np.int64]
_COUNTING_ITEM = Q(kind=RoundItem.Kind.REGULAR) & ~Q(round__purpose=Round.Purpose.PRACTICE)
_LATEST_LAST = ("assignment__submitted_at", "assignment_id")
CODES = {"met": MET, "not_met": NOT_MET, "cannot_tell": CANNOT_TELL}


@dataclass(frozen=True, slots=True)
class RoundRatings:
    """One entry for each annotator and unit: the latest submitted regular answer.

    All arrays are (answers,); ids of the database, and in `answer` the codes of
    annotation.agreement. `dimension` is that of the published rubric, where the criterion is in it.
    """

    reply: IntArray
    criterion: IntArray
    annotator: IntArray
    answer: IntArray
    conversation: IntArray
    dimension: IntArray
    respondent: IntArray


@dataclass(frozen=True, slots=True)
class ConsensusUnits:
    """One entry for each unit with a submitted answer; all arrays (units,).

    `met` is 1, 0 or -1 (none). `provenance` is unanimous, majority, single, adjudicated,
    unresolvable or none.
    """

    reply: IntArray
    criterion: IntArray
    conversation: IntArray
    dimension: IntArray
    respondent: IntArray
    met: IntArray
    provenance: NDArray[np.str_]


def round_ratings(round_ids: Iterable[int]) -> RoundRatings:
    """Return the answers that count; practice, gold, repeat and surplus never do."""
    ids = sorted(set(round_ids))
    rows = (
        _counting(ids)
        .order_by(*_LATEST_LAST)
        .values_list(
            "assignment__round_item__reply_id",
            "criterion_id",
            "assignment__annotator_id",
            "value",
            "assignment__round_item__reply__conversation_id",
            "assignment__round_item__reply__respondent_id",
        )
    )
    latest = {(row[0], row[1], row[2]): row for row in rows}
    kept = [latest[key] for key in sorted(latest)]
    dimensions = _dimensions(ids)

    def column(values: Iterable[int]) -> IntArray:
        return np.fromiter(values, dtype=np.int64, count=len(kept))

    return RoundRatings(
        reply=column(row[0] for row in kept),
        criterion=column(row[1] for row in kept),
        annotator=column(row[2] for row in kept),
        answer=column(CODES[str(row[3])] for row in kept),
        conversation=column(row[4] for row in kept),
        dimension=column(dimensions[row[1]] for row in kept),
        respondent=column(row[5] for row in kept),
    )


def consensus_units(round_ids: Iterable[int]) -> ConsensusUnits:
    """Return the consensus of each unit, with the newest adjudication where there is one."""
    ids = sorted(set(round_ids))
    ratings = round_ratings(ids)
    overlaps = dict(
        RoundItem.objects.filter(_COUNTING_ITEM, round__in=ids)
        .order_by()
        .values_list("reply_id")
        .annotate(most=Max("round__overlap"))
    )
    answers: dict[tuple[int, int], list[int]] = defaultdict(list)
    facts: dict[tuple[int, int], tuple[int, int, int]] = {}
    for place, answer in enumerate(ratings.answer.tolist()):
        unit = (int(ratings.reply[place]), int(ratings.criterion[place]))
        answers[unit].append(answer)
        facts[unit] = (
            int(ratings.conversation[place]),
            int(ratings.dimension[place]),
            int(ratings.respondent[place]),
        )
    decided = {
        (reply, criterion): value
        for reply, criterion, value in _deciding(ids).values_list(
            "reply_id", "criterion_id", "value"
        )
    }
    units = sorted(answers)
    met, provenance = [], []
    for unit in units:
        value, origin = _decide(answers[unit], overlaps[unit[0]], decided.get(unit))
        met.append(value)
        provenance.append(origin)
    return ConsensusUnits(
        reply=np.array([unit[0] for unit in units], dtype=np.int64),
        criterion=np.array([unit[1] for unit in units], dtype=np.int64),
        conversation=np.array([facts[unit][0] for unit in units], dtype=np.int64),
        dimension=np.array([facts[unit][1] for unit in units], dtype=np.int64),
        respondent=np.array([facts[unit][2] for unit in units], dtype=np.int64),
        met=np.array(met, dtype=np.int64),
        provenance=np.array(provenance, dtype=np.str_),
    )


def labels_digest(round_ids: Sequence[int]) -> str:
    """Return the digest of all answers and adjudications that count, the same on any database."""
    ids = sorted(set(round_ids))
    labels = (
        _counting(ids)
        .order_by(*_LATEST_LAST)
        .values_list(
            "assignment__round_item__reply__conversation__collection__slug",
            "assignment__round_item__reply__conversation__key",
            "assignment__round_item__reply__respondent__slug",
            "assignment__round_item__reply__sample",
            "criterion__key",
            "assignment__annotator__pseudonym",
            "value",
        )
    )
    decisions = _deciding(ids).values_list(
        "reply__conversation__collection__slug",
        "reply__conversation__key",
        "reply__respondent__slug",
        "reply__sample",
        "criterion__key",
        "value",
    )
    latest = {row[:6]: list(row) for row in labels}
    newest = {row[:5]: list(row) for row in decisions}
    return digest(
        {
            "labels": [latest[key] for key in sorted(latest)],
            "adjudications": [newest[key] for key in sorted(newest)],
        }
    )


def _counting(round_ids: Sequence[int]) -> QuerySet[Label]:
    return Label.objects.filter(
        assignment__round_item__round__in=round_ids,
        assignment__state=Assignment.State.SUBMITTED,
        assignment__round_item__kind=RoundItem.Kind.REGULAR,
        value__isnull=False,
    ).exclude(assignment__round_item__round__purpose=Round.Purpose.PRACTICE)


def _deciding(round_ids: Sequence[int]) -> QuerySet[Adjudication]:
    """Return the adjudications, the newest last; those of practice rounds never leave them."""
    return (
        Adjudication.objects.filter(round__in=round_ids)
        .exclude(round__purpose=Round.Purpose.PRACTICE)
        .order_by("id")
    )


def _dimensions(round_ids: Sequence[int]) -> dict[int, int]:
    """Return the dimension of each criterion: of the published rubric, else of the item's."""
    used = RubricItem.objects.filter(rubric__round_items__round__in=round_ids)
    newest_last = used.order_by("rubric__version", "rubric_id")
    found = dict(newest_last.values_list("criterion_id", "dimension_id").distinct())
    conversations = RoundItem.objects.filter(round__in=round_ids).values("reply__conversation")
    published = RubricItem.objects.filter(
        rubric__status=Rubric.Status.PUBLISHED, rubric__conversation__in=conversations
    )
    found.update(published.order_by().values_list("criterion_id", "dimension_id"))
    return found


def _decide(answers: list[int], overlap: int, decision: str | None) -> tuple[int, str]:
    if decision == Adjudication.Decision.UNRESOLVABLE:
        return -1, "unresolvable"
    if decision is not None:
        return int(decision == Adjudication.Decision.MET), "adjudicated"
    agreed = consensus(
        answers.count(MET), answers.count(NOT_MET), answers.count(CANNOT_TELL), overlap
    )
    return (-1 if agreed.met is None else int(agreed.met)), agreed.provenance

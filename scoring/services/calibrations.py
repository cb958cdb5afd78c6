"""Calibrations: what a judge's verdicts are worth, and the decisions on them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from numpy.typing import NDArray

from annotation import selectors as annotation_selectors
from annotation.agreement import MET, MISSING, NOT_MET, agreement_panel, unit_counts
from annotation.models import Annotator, LabelEvent, Round
from corpus.models import Collection, Conversation, Dimension
from distressbench_site.accounts.models import User
from distressbench_site.accounts.services import record_audit
from scoring.calibration import Standing, judge_panel, judge_standing
from scoring.models import Calibration, CalibrationDecision, Judge, Split, SplitMember
from scoring.selectors import (
    LabelledUnits,
    calibration_digest,
    calibration_status,
    current_calibration,
    labelled_units,
    texts_digest,
    verdicts_of,
)
from scoring.services.judges import checked_rounds
from scoring.services.plain import plain
from scoring.services.scores import refresh_scores
from scoring.services.splits import make_split, open_split

IntArray = NDArray[np.int64]

SEED = 20260101
Decision = CalibrationDecision.Decision


def calibrate(
    *,
    judge: Judge,
    rounds: Iterable[Round],
    actor: User | None,
    reason: str = "",
    targets: Mapping[str, Any] | None = None,
) -> Calibration:
    """Measure a judge against the test labels of rounds; opens the split if nobody has.

    The same measurement twice is the same calibration.
    """
    listed = list(rounds)
    if not listed:
        raise ValidationError("Name at least one round.")
    collection = listed[0].collection
    chosen = checked_rounds(listed, collection)
    split = make_split(collection=collection, actor=actor)
    ids = [item.pk for item in chosen]
    # Taken before the labels are read: a label that arrives meanwhile makes it stale, never less.
    labels_digest = annotation_selectors.labels_digest(ids)
    events = LabelEvent.objects.filter(assignment__round_item__round__in=ids)
    event_mark = events.aggregate(last=Max("id"))["last"] or 0
    units = labelled_units(chosen, SplitMember.Part.TEST)
    verdicts = verdicts_of(judge, collection)
    says = _codes(units, verdicts)
    _require_material(judge, collection, units, says)
    names = [item.name for item in chosen]
    _open_once(split, reason or f"To calibrate {judge} on {', '.join(names)}.", targets, actor)
    metrics = _metrics(units, says, chosen)
    keys = sorted(
        Conversation.objects.filter(pk__in=np.unique(units.conversation).tolist())
        .order_by()
        .values_list("key", flat=True)
    )
    parameters = {
        "judge_digest": judge.digest,
        "seed": SEED,
        "conversations": keys,
        "texts_digest": texts_digest(collection, keys),
        "n_outdated": units.n_outdated,
        "opening": split.openings.aggregate(last=Max("number"))["last"],
    }
    return _save(judge, split, names, metrics, parameters, labels_digest, event_mark, actor)


@transaction.atomic
def _save(
    judge: Judge,
    split: Split,
    rounds: list[str],
    metrics: dict[str, Any],
    parameters: dict[str, Any],
    labels_digest: str,
    event_mark: int,
    actor: User | None,
) -> Calibration:
    key = calibration_digest(
        judge=judge.digest,
        collection=split.collection.slug,
        rounds=rounds,
        labels=labels_digest,
        metrics=metrics,
        parameters=parameters,
    )
    Collection.objects.select_for_update(no_key=True).get(pk=split.collection_id)
    existing = Calibration.objects.filter(digest=key).first()
    if existing is not None:
        return existing
    last = Calibration.objects.filter(judge=judge, split=split).aggregate(last=Max("number"))
    calibration = Calibration.objects.create(
        judge=judge,
        split=split,
        number=(last["last"] or 0) + 1,
        rounds=rounds,
        metrics=metrics,
        parameters=parameters,
        labels_digest=labels_digest,
        label_events_used=event_mark,
        digest=key,
        created_by=actor,
    )
    record_audit(
        actor=actor,
        action="judge calibrated",
        target=calibration,
        detail={"rounds": rounds, "collection": split.collection.slug, "digest": key},
    )
    return calibration


def decide_calibration(
    *, calibration: Calibration, decision: str, reason: str, actor: User | None
) -> CalibrationDecision:
    """Approve, reject or supersede a calibration with a reason, and refresh its leaderboard."""
    if decision not in Decision.values:
        raise ValidationError({"decision": "Approve, reject or supersede."})
    if not reason.strip():
        raise ValidationError({"reason": "A decision needs a reason."})
    collection = calibration.split.collection
    if decision == Decision.APPROVE:
        status = calibration_status(calibration)
        if status.stale:
            raise ValidationError(
                "This calibration is stale and cannot be approved: "
                + " ".join(status.reasons)
                + " Calibrate again."
            )
    with transaction.atomic():
        Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
        former = current_calibration(calibration.judge, collection)
        made = CalibrationDecision.objects.create(
            calibration=calibration, decision=decision, reason=reason.strip(), decided_by=actor
        )
        if decision == Decision.APPROVE and former is not None and former.pk != calibration.pk:
            CalibrationDecision.objects.create(
                calibration=former,
                decision=Decision.SUPERSEDE,
                reason=f"Calibration {calibration.number} was approved in its place.",
                decided_by=actor,
            )
        record_audit(
            actor=actor,
            action=f"calibration {made.get_decision_display()}",
            target=calibration,
            detail={"reason": made.reason, "collection": collection.slug},
        )
    refresh_scores(collection=collection, judge=calibration.judge)
    return made


def _open_once(
    split: Split, reason: str, targets: Mapping[str, Any] | None, actor: User | None
) -> None:
    if targets or not split.openings.exists():
        open_split(split=split, reason=reason, targets=targets or {}, actor=actor)


def _codes(units: LabelledUnits, verdicts: Mapping[tuple[int, int], bool]) -> IntArray:
    found = (
        verdicts.get((int(reply), int(criterion)))
        for reply, criterion in zip(units.reply, units.current, strict=True)
    )
    return np.array(
        [MISSING if met is None else MET if met else NOT_MET for met in found], dtype=np.int64
    )


def _require_material(
    judge: Judge,
    collection: Collection,
    units: LabelledUnits,
    says: IntArray,
) -> None:
    if not (units.met >= 0).any():
        raise ValidationError(
            f"No test conversation of {collection.slug} has agreed labels in these rounds. Have"
            " more replies labelled to submission, or name further rounds."
        )
    if not ((says >= 0) & (units.met >= 0)).any():
        raise ValidationError(
            f"{judge} has judged none of the labelled test replies of {collection.slug}. Run it"
            " on the collection first."
        )


def _metrics(units: LabelledUnits, says: IntArray, rounds: list[Round]) -> dict[str, Any]:
    def rng() -> np.random.Generator:
        return np.random.default_rng(SEED)

    overall = judge_panel(units.conversation, says, units.met, rng())
    slugs = Dimension.objects.in_bulk(np.unique(units.dimension).tolist())
    by_dimension = {}
    for dimension in sorted(slugs.values(), key=lambda d: d.position):
        own = units.dimension == dimension.pk
        panel = judge_panel(units.conversation[own], says[own], units.met[own], rng())
        by_dimension[dimension.slug] = plain(panel)
    matrix, annotators = _clinicians(units, rounds)
    standing = judge_standing(
        units.conversation, says, np.where(matrix > 1, MISSING, matrix), rng()
    )
    agreement = agreement_panel(unit_counts(matrix, units.conversation), rng())
    return {
        "part": "test",
        "overall": plain(overall),
        "dimensions": by_dimension,
        "standing": _standing(standing, annotators),
        "agreement": plain(agreement),
        "constant": plain(overall.constant) if overall.constant else None,
        "n_units": overall.n_units,
        "n_conversations": overall.n_conversations,
    }


def _clinicians(units: LabelledUnits, rounds: list[Round]) -> tuple[IntArray, list[str]]:
    """Return the answers of each annotator to these units: codes (raters, units)."""
    ratings = annotation_selectors.round_ratings([item.pk for item in rounds])
    place = {
        (int(reply), int(criterion)): i
        for i, (reply, criterion) in enumerate(zip(units.reply, units.criterion, strict=True))
    }
    raters = {int(key): i for i, key in enumerate(np.unique(ratings.annotator))}
    matrix = np.full((len(raters), len(place)), MISSING, dtype=np.int64)
    for reply, criterion, annotator, answer in zip(
        ratings.reply, ratings.criterion, ratings.annotator, ratings.answer, strict=True
    ):
        column = place.get((int(reply), int(criterion)))
        if column is not None:
            matrix[raters[int(annotator)], column] = answer
    present: NDArray[np.bool_] = np.any(matrix >= 0, axis=1)
    names = Annotator.objects.in_bulk(list(raters))
    kept = [names[key].pseudonym for key, row in raters.items() if present[row]]
    return matrix[present], kept


def _standing(standing: Standing, annotators: list[str]) -> dict[str, Any]:
    return {
        "judge": plain(standing.judge),
        "clinicians": [
            {"annotator": name, "judge_against": plain(against.macro_f1), **plain(own)}
            for name, own, against in zip(
                annotators, standing.clinicians, standing.against_each, strict=True
            )
        ],
        "place": standing.place,
    }

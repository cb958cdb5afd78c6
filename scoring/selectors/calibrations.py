"""What labels say about a judge, and whether a calibration still holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation import selectors as annotation_selectors
from annotation.models import Round
from corpus.models import Collection, Criterion, RubricItem
from corpus.schema import digest
from scoring.models import Calibration, CalibrationDecision, Judge, SplitMember

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Status:
    """The newest decision on a calibration, and why it is stale if it is."""

    decision: str
    stale: bool
    reasons: list[str] = field(default_factory=list)
    decided_reason: str = ""

    @property
    def approved(self) -> bool:
        """Return whether it was approved and still holds."""
        return self.decision == CalibrationDecision.Decision.APPROVE and not self.stale


@dataclass(frozen=True, slots=True)
class LabelledUnits:
    """Units of one part of the split with their consensus, all arrays (units,).

    `criterion` is the one that was labelled, `current` the one of the published rubric with the
    same meaning. `met` is 1, 0, or -1 without consensus; `n_outdated` units were left out, as
    the published rubric says nothing of the same meaning any more.
    """

    reply: IntArray
    criterion: IntArray
    current: IntArray
    conversation: IntArray
    dimension: IntArray
    met: IntArray
    n_outdated: int


def current_calibration(judge: Judge, collection: Collection) -> Calibration | None:
    """Return the newest calibration of a judge on a collection that was approved last."""
    candidates = (
        Calibration.objects.filter(judge=judge, split__collection=collection)
        .defer("judge__artifact")
        .prefetch_related("decisions")
        .order_by("-number")
    )
    return next(
        (c for c in candidates if _decision(c) == CalibrationDecision.Decision.APPROVE), None
    )


def calibration_status(calibration: Calibration) -> Status:
    """Return the newest decision, and compare judge, texts and labels with those measured."""
    reasons = []
    parameters = calibration.parameters
    if parameters.get("judge_digest", calibration.judge.digest) != calibration.judge.digest:
        reasons.append("The judge is not the one that was measured.")
    rounds = dict(
        Round.objects.filter(name__in=calibration.rounds).order_by().values_list("name", "id")
    )
    missing = [name for name in calibration.rounds if name not in rounds]
    if missing:
        reasons.append(f"The round {', '.join(missing)} is not here.")
    elif annotation_selectors.labels_digest(list(rounds.values())) != calibration.labels_digest:
        reasons.append("Labels have changed since.")
    keys = parameters.get("conversations", [])
    if texts_digest(calibration.split.collection, keys) != parameters.get("texts_digest"):
        reasons.append("Criteria have changed since.")
    newest = max(calibration.decisions.all(), key=lambda d: d.pk, default=None)
    return Status(
        decision=newest.decision if newest else "",
        stale=bool(reasons),
        reasons=reasons,
        decided_reason=newest.reason if newest else "",
    )


def calibration_digest(
    *,
    judge: str,
    collection: str,
    rounds: Sequence[str],
    labels: str,
    metrics: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> str:
    """Return the digest over what was measured, on what, and how; judge and labels by theirs."""
    return digest(
        {
            "judge": judge,
            "collection": collection,
            "rounds": rounds,
            "labels": labels,
            "metrics": metrics,
            "parameters": parameters,
        }
    )


def texts_digest(collection: Collection, conversations: Sequence[str]) -> str:
    """Return the digest of the published criteria of these conversations (keys)."""
    rows = (
        RubricItem.objects.filter(
            rubric__status="published", rubric__conversation__collection=collection
        )
        .order_by()
        .values_list("rubric__conversation__key", "criterion__key", "criterion__text")
    )
    wanted = set(conversations)
    return digest(sorted(list(row) for row in rows if row[0] in wanted))


def labelled_units(rounds: Iterable[Round], part: str | None) -> LabelledUnits:
    """Return the labelled units of rounds in one part of the split (None: in both)."""
    chosen = list(rounds)
    units = annotation_selectors.consensus_units([item.pk for item in chosen])
    collections = {item.collection_id for item in chosen}
    kept = np.ones(len(units.reply), dtype=np.bool_)
    if part is not None:
        members = SplitMember.objects.filter(split__collection__in=collections, part=part)
        kept = np.isin(
            units.conversation,
            np.array(list(members.values_list("conversation_id", flat=True)), dtype=np.int64),
        )
    published = _published_dimensions(collections)
    current = _current_criteria(collections, published)
    now = np.array([current.get(int(key), -1) for key in units.criterion], dtype=np.int64)
    outdated = int((kept & (now < 0)).sum())
    kept &= now >= 0
    # Where an old and a new wording are both labelled, the label of the current one counts.
    exact_first = np.argsort(now != units.criterion, kind="stable")
    seen: set[tuple[int, int]] = set()
    for place in exact_first:
        key = (int(units.reply[place]), int(now[place]))
        if kept[place] and key in seen:
            kept[place] = False
        seen.add(key)
    return LabelledUnits(
        reply=np.asarray(units.reply)[kept],
        criterion=np.asarray(units.criterion)[kept],
        current=now[kept],
        conversation=np.asarray(units.conversation)[kept],
        dimension=np.array([published[int(key)] for key in now[kept]], dtype=np.int64),
        met=np.asarray(units.met)[kept],
        n_outdated=outdated,
    )


def _decision(calibration: Calibration) -> str:
    newest = max(calibration.decisions.all(), key=lambda d: d.pk, default=None)
    return newest.decision if newest else ""


def _published_dimensions(collections: Iterable[int]) -> dict[int, int]:
    rows = RubricItem.objects.filter(
        rubric__status="published", rubric__conversation__collection__in=list(collections)
    )
    return dict(rows.order_by().values_list("criterion_id", "dimension_id"))


def _current_criteria(collections: Iterable[int], published: dict[int, int]) -> dict[int, int]:
    """Map each criterion to the published one of the same meaning."""
    parents = dict(
        Criterion.objects.filter(conversation__collection__in=list(collections))
        .order_by()
        .values_list("id", "same_meaning_as_id")
    )

    def root(key: int) -> int:
        parent = parents.get(key)
        while parent is not None:
            key, parent = parent, parents.get(parent)
        return key

    by_root = {root(key): key for key in sorted(published)}
    return {
        key: key if key in published else by_root[root(key)]
        for key in parents
        if key in published or root(key) in by_root
    }

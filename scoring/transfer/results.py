"""Calibrations and scores, into and out of a bundle; scores are computed again and compared."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from corpus.models import Collection
from corpus.schema import canonical_json
from corpus.schema.fields import moment_text, parse_moment
from corpus.transfer.collections import collection_slugs
from corpus.transfer.table import Key, LateProblem, Problem, Scope, Table, written
from scoring.bundle.rows import CalibrationRow, ScoreRow
from scoring.models import Calibration, CalibrationDecision, Judge, Verdict
from scoring.selectors import calibration_digest
from scoring.services import current_scores, refresh_scores
from scoring.transfer.index import ScoringIndex


class CalibrationTable(Table[CalibrationRow]):
    """What judges were found to be worth, and what was decided."""

    name: ClassVar[str] = "calibrations"
    key: ClassVar[tuple[str, ...]] = ("judge", "judge_version", "collection", "number")
    row = CalibrationRow

    def __init__(self, index: ScoringIndex) -> None:
        self._index = index
        self._digests: set[str] = set(
            Calibration.objects.order_by().values_list("digest", flat=True)
        )

    def stored(self, rows: Sequence[CalibrationRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored calibrations."""
        found = Calibration.objects.filter(
            judge__name__in={row.judge for row in rows},
            split__collection__slug__in={row.collection for row in rows},
        )
        return {tuple(row[part] for part in self.key): row for row in _calibrations(found)}

    def problems(self, row: CalibrationRow, line: int) -> Iterator[Problem]:
        """Refuse a measurement of nobody, on nothing, or with the digest of another."""
        judge = self._index.judges.get((row.judge, row.judge_version))
        if judge is None:
            yield "judge", f"{row.judge} v{row.judge_version}", "there is no such judge"
        if row.collection not in self._index.splits:
            yield "collection", row.collection, "the collection has no split"
        for number, name in enumerate(row.rounds):
            if self._index.annotation.round(name) is None:
                yield f"rounds[{number}]", name, "there is no such round"
        if judge is None or judge.mode is None:
            return
        made = calibration_digest(
            judge=judge.digest,
            collection=row.collection,
            rounds=row.rounds,
            labels=row.labels_digest,
            metrics=row.metrics,
            parameters=row.parameters,
        )
        if made != row.digest:
            yield "digest", row.digest, "this is not the digest of the calibration in this row"
        elif row.digest in self._digests:
            yield "digest", row.digest, "the same calibration is known under another number"

    def admit(self, row: CalibrationRow, line: int) -> None:
        """Remember a calibration."""
        self._digests.add(row.digest)

    def write(self, rows: Callable[[], Iterator[list[CalibrationRow]]]) -> None:
        """Insert calibrations with the decisions on them."""
        for chunk in rows():
            made = Calibration.objects.bulk_create(
                Calibration(
                    judge_id=written(self._index.judges[row.judge, row.judge_version].pk),
                    split_id=written(self._index.splits[row.collection]),
                    number=row.number,
                    rounds=row.rounds,
                    metrics=row.metrics,
                    parameters=row.parameters,
                    labels_digest=row.labels_digest,
                    label_events_used=row.label_events_used,
                    digest=row.digest,
                    created_at=parse_moment(row.created_at),
                )
                for row in chunk
            )
            decisions = [
                CalibrationDecision(
                    calibration=one,
                    decision=decision.decision,
                    reason=decision.reason,
                    decided_at=parse_moment(decision.decided_at),
                )
                for row, one in zip(chunk, made, strict=True)
                for decision in row.decisions
            ]
            # The newest decision counts, so they enter in the order in which they were taken.
            CalibrationDecision.objects.bulk_create(
                sorted(decisions, key=lambda decision: decision.decided_at)
            )

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the calibrations."""
        found = Calibration.objects.filter(split__collection__slug__in=collection_slugs(scope))
        rows = _calibrations(found)
        yield from sorted(rows, key=lambda row: tuple(row[part] for part in self.key))


class ScoreTable(Table[ScoreRow]):
    """What follows from all other tables: written for readers, compared on the way in."""

    name: ClassVar[str] = "scores"
    key: ClassVar[tuple[str, ...]] = ("collection", "judge", "judge_version")
    row = ScoreRow

    def __init__(self, index: ScoringIndex) -> None:
        self._index = index
        self._lines: dict[Key, int] = {}
        self._rows: Callable[[], Iterator[list[ScoreRow]]] | None = None

    def stored(self, rows: Sequence[ScoreRow]) -> Mapping[Key, dict[str, Any]]:
        """Return nothing: every row is compared once the other tables are written."""
        return {}

    def problems(self, row: ScoreRow, line: int) -> Iterator[Problem]:
        """Refuse scores of nothing, or by nobody."""
        if self._index.corpus.collection(row.collection) is None:
            yield "collection", row.collection, "there is no such collection"
        if (row.judge, row.judge_version) not in self._index.judges:
            yield "judge", f"{row.judge} v{row.judge_version}", "there is no such judge"

    def admit(self, row: ScoreRow, line: int) -> None:
        """Remember where a row stands."""
        self._lines[self.key_of(row)] = line

    def write(self, rows: Callable[[], Iterator[list[ScoreRow]]]) -> None:
        """Keep the way to the rows; nothing of them is stored."""
        self._rows = rows

    def complete(self) -> Iterator[LateProblem]:
        """Compute the scores of the imported data, and refuse rows that say otherwise."""
        for chunk in self._rows() if self._rows else ():
            for row in chunk:
                collection = Collection.objects.get(slug=row.collection)
                judge = Judge.objects.get(name=row.judge, version=row.judge_version)
                found = refresh_scores(collection=collection, judge=judge)
                computed = _score(row.collection, judge, found.payload)
                line = self._lines[self.key_of(row)]
                for field, value in row.model_dump().items():
                    if canonical_json(value) != canonical_json(computed[field]):
                        reason = "the rest of the bundle gives another result"
                        yield line, _first_difference(field, value, computed[field]), "", reason

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the scores of every judge that judged a collection."""
        for slug in collection_slugs(scope):
            collection = Collection.objects.get(slug=slug)
            judged = Verdict.objects.filter(reply__conversation__collection=collection, draw=0)
            judges = Judge.objects.defer("artifact").filter(
                pk__in=judged.order_by().values("judge")
            )
            for judge in sorted(judges, key=lambda one: (one.name, one.version)):
                payload = current_scores(collection=collection, judge=judge).payload
                yield _score(slug, judge, payload)


def _first_difference(path: str, given: Any, computed: Any) -> str:
    if isinstance(given, dict) and isinstance(computed, dict):
        for key in sorted({*given, *computed}):
            if given.get(key) != computed.get(key):
                return _first_difference(f"{path}.{key}", given.get(key), computed.get(key))
    if isinstance(given, list) and isinstance(computed, list) and len(given) == len(computed):
        for number, (a, b) in enumerate(zip(given, computed, strict=True)):
            if a != b:
                return _first_difference(f"{path}[{number}]", a, b)
    return path


def _score(collection: str, judge: Judge, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "collection": collection,
        "judge": judge.name,
        "judge_version": judge.version,
        "calibration": payload["calibration"],
        "ruler": payload["ruler"],
        "payload": payload,
    }


def _calibrations(found: Any) -> list[dict[str, Any]]:
    chosen = found.order_by().select_related("judge", "split__collection")
    return [
        {
            "judge": one.judge.name,
            "judge_version": one.judge.version,
            "collection": one.split.collection.slug,
            "number": one.number,
            "rounds": one.rounds,
            "metrics": one.metrics,
            "parameters": one.parameters,
            "labels_digest": one.labels_digest,
            "label_events_used": one.label_events_used,
            "digest": one.digest,
            "created_at": moment_text(one.created_at),
            "decisions": [
                {
                    "decision": decision.decision,
                    "reason": decision.reason,
                    "decided_at": moment_text(decision.decided_at),
                }
                for decision in sorted(one.decisions.all(), key=lambda decision: decision.pk)
            ],
        }
        for one in chosen.defer("judge__artifact").prefetch_related("decisions")
    ]

"""Judges, splits and calibrations by natural key: those stored, and those of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from annotation.transfer import AnnotationIndex
from corpus.transfer.index import CorpusIndex
from corpus.transfer.table import Problem
from scoring.models import Judge, Split

JudgeKey = tuple[str, int]


@dataclass(slots=True)
class KnownJudge:
    """A judge; mode is None where its row was refused."""

    pk: int | None
    mode: str | None
    digest: str


@dataclass(slots=True)
class ScoringIndex:
    """What verdicts, calibrations and scores refer to by natural key."""

    corpus: CorpusIndex
    annotation: AnnotationIndex
    judges: dict[JudgeKey, KnownJudge] = field(default_factory=dict)
    splits: dict[str, int | None] = field(default_factory=dict)
    # By judge and collection: the highest number of a calibration.
    calibrations: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def load(self) -> None:
        """Read what the database has."""
        for pk, name, version, mode, key in Judge.objects.order_by().values_list(
            "pk", "name", "version", "mode", "digest"
        ):
            self.judges[name, version] = KnownJudge(pk, mode, key)
        self.splits.update(Split.objects.order_by().values_list("collection__slug", "pk"))

    def unit_problems(self, row: Any) -> list[Problem]:
        """Return what is wrong with the unit and the judge that a row names."""
        if (row.judge, row.judge_version) not in self.judges:
            return [("judge", f"{row.judge} v{row.judge_version}", "there is no such judge")]
        known = self.corpus.conversation(row.collection, row.conversation)
        if known is None:
            reason = "the collection has no such conversation"
            return [("conversation", row.conversation, reason)]
        found: list[Problem] = []
        if (row.respondent, row.sample) not in known.replies:
            found.append(("respondent", row.respondent, "the respondent has no such reply"))
        if row.criterion not in known.criteria:
            reason = "the conversation has no such criterion"
            found.append(("criterion", row.criterion, reason))
        return found

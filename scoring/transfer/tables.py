"""All tables of a bundle, in the order in which they refer to one another."""

from collections.abc import Callable
from typing import Any

from annotation.transfer import AnnotationIndex, annotation_tables
from corpus.transfer import corpus_tables
from corpus.transfer.index import CorpusIndex
from corpus.transfer.table import Table
from scoring.transfer.index import ScoringIndex
from scoring.transfer.judges import JudgeTable, SplitTable, VerdictTable
from scoring.transfer.results import CalibrationTable, ScoreTable

TABLES = (
    "collections",
    "dimensions",
    "subcategories",
    "conversations",
    "criteria",
    "rubrics",
    "respondents",
    "replies",
    "annotators",
    "rounds",
    "assignments",
    "label_events",
    "labels",
    "adjudications",
    "splits",
    "judges",
    "verdicts",
    "calibrations",
    "scores",
)


def all_tables(
    fetch: Callable[[str, int], dict[str, Any]], notice: str | None = None
) -> list[Table[Any]]:
    """Return every table; `fetch` gives one row of the file again, by table and line."""
    corpus = CorpusIndex(fetch)
    annotation = AnnotationIndex(corpus)
    scoring = ScoringIndex(corpus, annotation)
    scoring.load()
    return [
        *corpus_tables(corpus, notice),
        *annotation_tables(annotation),
        SplitTable(scoring),
        JudgeTable(scoring),
        VerdictTable(scoring),
        CalibrationTable(scoring),
        ScoreTable(scoring),
    ]

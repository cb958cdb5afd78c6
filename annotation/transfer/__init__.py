"""The tables of labels of a bundle, in and out of the database."""

from typing import Any

from annotation.transfer.assignments import AssignmentTable
from annotation.transfer.index import AnnotationIndex
from annotation.transfer.labels import AdjudicationTable, LabelEventTable, LabelTable
from annotation.transfer.rounds import AnnotatorTable, RoundTable
from corpus.transfer.table import Table


def annotation_tables(index: AnnotationIndex) -> list[Table[Any]]:
    """Return the tables of labels, in the order in which they refer to one another."""
    return [
        AnnotatorTable(index),
        RoundTable(index),
        AssignmentTable(index),
        LabelEventTable(index),
        LabelTable(index),
        AdjudicationTable(index),
    ]


__all__ = ["AnnotationIndex", "annotation_tables"]

"""Writes of the corpus: its tables of a bundle."""

from typing import Any

from corpus.transfer.collections import CollectionTable, DimensionTable, SubcategoryTable
from corpus.transfer.conversations import ConversationTable, CriterionTable
from corpus.transfer.index import CorpusIndex
from corpus.transfer.replies import ReplyTable, RespondentTable
from corpus.transfer.rubrics import RubricTable
from corpus.transfer.table import Table


def corpus_tables(index: CorpusIndex, notice: str | None = None) -> list[Table[Any]]:
    """Return the tables of the corpus, in the order in which they refer to one another."""
    return [
        CollectionTable(index, notice),
        DimensionTable(index),
        SubcategoryTable(index),
        ConversationTable(index),
        CriterionTable(index),
        RubricTable(index),
        RespondentTable(index),
        ReplyTable(index),
    ]

"""The natural keys of the corpus: those stored, and those of a file that is being imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from corpus.models import (
    Collection,
    Conversation,
    Criterion,
    Dimension,
    Reply,
    Respondent,
    Rubric,
    RubricItem,
    Subcategory,
)
from corpus.schema import places


@dataclass(slots=True)
class KnownRubric:
    """A rubric version: the criteria it asks; pk is None until it is written."""

    pk: int | None
    status: str
    criteria: frozenset[str]


@dataclass(slots=True)
class KnownConversation:
    """A conversation; places is None where its turns were refused."""

    pk: int | None
    places: int | None
    criteria: dict[str, int | None] = field(default_factory=dict)
    rubrics: dict[int, KnownRubric] = field(default_factory=dict)
    # A primary key, or minus the line of the file; 0 where the row was refused.
    replies: dict[tuple[str, int], int] = field(default_factory=dict)
    superseded: bool = False

    @property
    def is_stored(self) -> bool:
        """Tell whether the database has it."""
        return self.pk is not None


@dataclass(slots=True)
class KnownCollection:
    """A collection with all that it holds."""

    pk: int | None
    dimensions: dict[str, int | None] = field(default_factory=dict)
    subcategories: dict[str, int | None] = field(default_factory=dict)
    conversations: dict[str, KnownConversation] = field(default_factory=dict)


class CorpusIndex:
    """What refers to what by natural key; a collection is loaded when it is first asked for."""

    def __init__(self, fetch: Callable[[str, int], dict[str, Any]]) -> None:
        """Take the way to fetch one row of the file again: by table and line."""
        self._fetch = fetch
        self._turns: tuple[int, list[str]] = (0, [])
        self._collections: dict[str, KnownCollection | None] = {}
        self.respondents: dict[str, int | None] = dict(
            Respondent.objects.order_by().values_list("slug", "pk")
        )

    def collection(self, slug: str) -> KnownCollection | None:
        """Return a collection, or None where neither database nor file has it."""
        if slug not in self._collections:
            self._collections[slug] = _load(slug)
        return self._collections[slug]

    def add_collection(self, slug: str) -> None:
        """Remember a collection of the file."""
        if self.collection(slug) is None:
            self._collections[slug] = KnownCollection(None)

    def conversation(self, collection: str, key: str) -> KnownConversation | None:
        """Return a conversation, or None."""
        known = self.collection(collection)
        return known.conversations.get(key) if known else None

    def conversation_pks(self, keys: set[tuple[str, str]]) -> dict[int, tuple[str, str]]:
        """Return which of the conversations are stored, by primary key."""
        found: dict[int, tuple[str, str]] = {}
        for collection, key in keys:
            known = self.conversation(collection, key)
            if known and known.pk is not None:
                found[known.pk] = (collection, key)
        return found

    def reply_turns(self, reference: int) -> list[str]:
        """Return the texts of a reply, of the database or of the file; the last one is kept."""
        if self._turns[0] != reference:
            if reference > 0:
                turns = Reply.objects.values_list("turns", flat=True).get(pk=reference)
            else:
                turns = self._fetch("replies", -reference)["turns"]
            self._turns = (reference, turns)
        return self._turns[1]


def _load(slug: str) -> KnownCollection | None:
    pk = Collection.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if pk is None:
        return None
    known = KnownCollection(pk)
    known.dimensions.update(Dimension.objects.filter(collection=pk).values_list("slug", "pk"))
    known.subcategories.update(Subcategory.objects.filter(collection=pk).values_list("slug", "pk"))
    by_pk: dict[int, KnownConversation] = {}
    superseded: list[int] = []
    for conversation, key, turns, supersedes in (
        Conversation.objects.filter(collection=pk)
        .order_by()
        .values_list("pk", "key", "turns", "supersedes_id")
        .iterator()
    ):
        by_pk[conversation] = known.conversations[key] = KnownConversation(
            conversation, len(places(turns))
        )
        if supersedes:
            superseded.append(supersedes)
    for conversation in superseded:
        by_pk[conversation].superseded = True
    for criterion, conversation, key in (
        Criterion.objects.filter(conversation__collection=pk)
        .order_by()
        .values_list("pk", "conversation_id", "key")
        .iterator()
    ):
        by_pk[conversation].criteria[key] = criterion
    items: dict[int, set[str]] = {}
    for rubric, key in (
        RubricItem.objects.filter(rubric__conversation__collection=pk)
        .order_by()
        .values_list("rubric_id", "criterion__key")
        .iterator()
    ):
        items.setdefault(rubric, set()).add(key)
    for rubric, conversation, version, status in (
        Rubric.objects.filter(conversation__collection=pk)
        .order_by()
        .values_list("pk", "conversation_id", "version", "status")
        .iterator()
    ):
        by_pk[conversation].rubrics[version] = KnownRubric(
            rubric, status, frozenset(items.get(rubric, ()))
        )
    for reply, conversation, respondent, sample in (
        Reply.objects.filter(conversation__collection=pk)
        .order_by()
        .values_list("pk", "conversation_id", "respondent__slug", "sample")
        .iterator()
    ):
        by_pk[conversation].replies[respondent, sample] = reply
    return known

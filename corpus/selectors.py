"""What the pages of the corpus read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet, Sum

from corpus.models import (
    Collection,
    Conversation,
    Dimension,
    Reply,
    Respondent,
    Rubric,
    RubricItem,
    Subcategory,
)
from corpus.schema import places

# The reference first and the floors last, as on leaderboards.
KIND_ORDER: list[str] = [Respondent.Kind.REFERENCE, Respondent.Kind.MODEL, Respondent.Kind.FLOOR]


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """A collection and how much is in it; criteria are those of published rubrics."""

    collection: Collection
    conversations: int
    multi_turn: int
    criteria: int
    replies: int
    respondents: int

    @property
    def single_turn(self) -> int:
        """Return how many conversations have one user turn."""
        return self.conversations - self.multi_turn


@dataclass(frozen=True, slots=True)
class DimensionSummary:
    """A dimension, how many criteria ask for it, and its share of all weight."""

    dimension: Dimension
    criteria: int
    weight: int
    share: float | None

    @property
    def percent(self) -> str:
        """Return the share as a whole percentage."""
        return "–" if self.share is None else f"{100 * self.share:.0f} %"


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One line of the list of conversations."""

    conversation: Conversation
    opening: str
    turns: int
    criteria: int
    replies: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn in its order; a place is where the respondent speaks."""

    number: int
    role: str
    text: str
    place: int | None = None


@dataclass(frozen=True, slots=True)
class DimensionItems:
    """The criteria of one dimension in a rubric, in order."""

    dimension: Dimension
    members: list[RubricItem]
    weight: int


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """All that the page of a conversation shows."""

    conversation: Conversation
    turns: list[Turn]
    places: int
    rubric: Rubric | None
    dimensions: list[DimensionItems]
    weight: int
    criteria: int
    replies: list[Reply]


def summarise_collections(collections: Iterable[Collection]) -> list[CollectionSummary]:
    """Return the collections with their counts, by four queries whatever their number."""
    chosen = list(collections)
    ids = [collection.pk for collection in chosen]
    conversations = {
        row["collection"]: (row["all"], row["multi"])
        for row in Conversation.objects.filter(collection__in=ids)
        .order_by()
        .values("collection")
        .annotate(all=Count("id"), multi=Count("id", filter=Q(multi_turn=True)))
    }
    criteria = dict(
        _published_items(ids)
        .values("rubric__conversation__collection")
        .annotate(all=Count("id"))
        .values_list("rubric__conversation__collection", "all")
    )
    replies = {
        row["conversation__collection"]: (row["all"], row["respondents"])
        for row in Reply.objects.filter(conversation__collection__in=ids)
        .order_by()
        .values("conversation__collection")
        .annotate(all=Count("id"), respondents=Count("respondent", distinct=True))
    }
    return [
        CollectionSummary(
            collection,
            *conversations.get(collection.pk, (0, 0)),
            criteria.get(collection.pk, 0),
            *replies.get(collection.pk, (0, 0)),
        )
        for collection in chosen
    ]


def summarise_dimensions(collection: Collection) -> list[DimensionSummary]:
    """Return the dimensions of a collection with what its published rubrics ask of each."""
    counted = {
        row["dimension"]: (row["criteria"], row["weights"])
        for row in _published_items([collection.pk])
        .values("dimension")
        .annotate(criteria=Count("id"), weights=Sum("weight"))
    }
    total = sum(weight for _, weight in counted.values())
    return [
        DimensionSummary(dimension, criteria, weight, weight / total if total else None)
        for dimension in collection.dimensions.all()
        for criteria, weight in [counted.get(dimension.pk, (0, 0))]
    ]


def subcategories_with_counts(collection: Collection) -> QuerySet[Subcategory]:
    """Return the subcategories of a collection, each with its number of conversations."""
    return collection.subcategories.annotate(n_conversations=Count("conversations"))


def find_conversations(
    collection: Collection,
    *,
    text: str = "",
    subcategory: Subcategory | None = None,
    multi_turn: bool | None = None,
    status: str = "",
) -> QuerySet[Conversation]:
    """Return the conversations of a collection that fit; text is looked for in the key."""
    found = Conversation.objects.filter(collection=collection).select_related("subcategory")
    if text:
        found = found.filter(key__icontains=text)
    if subcategory is not None:
        found = found.filter(subcategory=subcategory)
    if multi_turn is not None:
        found = found.filter(multi_turn=multi_turn)
    if status:
        found = found.filter(status=status)
    return found.order_by("key")


def conversation_rows(conversations: Iterable[Conversation]) -> list[ConversationRow]:
    """Return the lines of a page of conversations, by two queries whatever their number."""
    chosen = list(conversations)
    ids = [conversation.pk for conversation in chosen]
    criteria = dict(
        RubricItem.objects.filter(
            rubric__conversation__in=ids, rubric__status=Rubric.Status.PUBLISHED
        )
        .order_by()
        .values("rubric__conversation")
        .annotate(all=Count("id"))
        .values_list("rubric__conversation", "all")
    )
    replies = dict(
        Reply.objects.filter(conversation__in=ids)
        .order_by()
        .values("conversation")
        .annotate(all=Count("id"))
        .values_list("conversation", "all")
    )
    return [
        ConversationRow(
            conversation,
            opening=next((t["text"] for t in conversation.turns if t["role"] == "user"), ""),
            turns=len(conversation.turns),
            criteria=criteria.get(conversation.pk, 0),
            replies=replies.get(conversation.pk, 0),
        )
        for conversation in chosen
    ]


def conversation_page(conversation: Conversation) -> ConversationPage:
    """Return a conversation with its published rubric and all replies."""
    rubric = conversation.rubrics.filter(status=Rubric.Status.PUBLISHED).first()
    items = _items_of(rubric) if rubric else []
    groups: dict[int, list[RubricItem]] = {}
    for item in sorted(items, key=lambda item: (item.dimension.position, item.position)):
        groups.setdefault(item.dimension_id, []).append(item)
    replies = conversation.replies.select_related("respondent").order_by(
        "respondent__name", "sample"
    )
    speaks = places(conversation.turns)
    return ConversationPage(
        conversation=conversation,
        turns=_turns_with_places(conversation, speaks),
        places=len(speaks),
        rubric=rubric,
        dimensions=[
            DimensionItems(group[0].dimension, group, sum(item.weight for item in group))
            for group in groups.values()
        ],
        weight=sum(item.weight for item in items),
        criteria=len(items),
        replies=sorted(replies, key=lambda reply: KIND_ORDER.index(reply.respondent.kind)),
    )


def _published_items(collections: Sequence[int]) -> QuerySet[RubricItem]:
    return RubricItem.objects.filter(
        rubric__conversation__collection__in=collections, rubric__status=Rubric.Status.PUBLISHED
    ).order_by()


def _items_of(rubric: Rubric) -> list[RubricItem]:
    items = rubric.items.select_related("criterion__same_meaning_as", "dimension")
    return list(items.order_by("position"))


def _turns_with_places(conversation: Conversation, speaks: Sequence[int]) -> list[Turn]:
    number_of = {index: number for number, index in enumerate(speaks, start=1)}
    return [
        Turn(index + 1, turn["role"], turn["text"], number_of.get(index))
        for index, turn in enumerate(conversation.turns)
    ]

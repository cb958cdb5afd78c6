"""The rows of the tables of the corpus."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from corpus.schema.fields import (
    ConversationKey,
    CriterionKey,
    Day,
    Free,
    Locale,
    Long,
    Moment,
    Name,
    Numbered,
    Row,
    Short,
    Slug,
    Small,
    Spoken,
    refuse,
)

# Where the notice of an imported bundle stands in its collections; never in a row's own source.
NOTICE_KEY = "bundle_notice"


class CollectionRow(Row):
    """A set of conversations."""

    slug: Slug
    name: Name
    description: str
    source: Free

    @model_validator(mode="after")
    def _notice_is_reserved(self) -> Self:
        if NOTICE_KEY in self.source:
            raise refuse(f"source.{NOTICE_KEY} is reserved; the manifest holds the notice")
        return self


class DimensionRow(Row):
    """An aspect that criteria are grouped by."""

    collection: Slug
    slug: Slug
    name: Name
    description: str
    stance: Literal["act", "withhold"]
    position: Small


class SubcategoryRow(Row):
    """What kind of crisis conversations are about."""

    collection: Slug
    slug: Slug
    name: Name
    description: str
    position: Small


class TurnRow(Row):
    """A fixed turn of a conversation."""

    role: Literal["user", "assistant"]
    text: Spoken


def check_turns(turns: list[TurnRow]) -> list[TurnRow]:
    """Refuse turns after which nobody waits for an answer."""
    if not turns:
        raise refuse("a conversation needs at least one turn of the user")
    if turns[-1].role != "user":
        raise refuse("the last turn must be the user's")
    return turns


class ConversationRow(Row):
    """Turns that a respondent answers."""

    collection: Slug
    key: ConversationKey
    subcategory: Slug | None
    locale: Locale
    turns: Annotated[list[TurnRow], AfterValidator(check_turns)]
    status: Literal["active", "embargoed", "withdrawn"]
    authors: list[Name]
    source: Free
    supersedes: ConversationKey | None

    @model_validator(mode="after")
    def _not_its_own_successor(self) -> Self:
        if self.supersedes == self.key:
            raise refuse("a conversation cannot supersede itself")
        return self


class CriterionRow(Row):
    """One statement about a reply."""

    collection: Slug
    conversation: ConversationKey
    key: CriterionKey
    text: Spoken
    same_meaning_as: CriterionKey | None
    reason: Annotated[str, StringConstraints(max_length=500)]
    source: Free

    @model_validator(mode="after")
    def _restatement_has_reason(self) -> Self:
        if self.same_meaning_as is not None and not self.reason:
            raise refuse("a restated criterion needs a reason")
        if self.same_meaning_as == self.key:
            raise refuse("a criterion cannot restate itself")
        return self


class RubricItemRow(Row):
    """A criterion's place in a rubric."""

    criterion: CriterionKey
    dimension: Slug
    weight: Annotated[int, Field(ge=1, le=20)]
    position: Small


class RubricRow(Row):
    """One version of a conversation's criteria."""

    collection: Slug
    conversation: ConversationKey
    version: Numbered
    status: Literal["draft", "published", "retired"]
    published_at: Moment | None
    author: Long
    change_note: str
    items: list[RubricItemRow]

    @model_validator(mode="after")
    def _is_coherent(self) -> Self:
        if (self.status == "draft") != (self.published_at is None):
            raise refuse("a draft has no published_at, and every other rubric has one")
        if not self.items and self.status != "draft":
            raise refuse("a published rubric needs at least one item")
        criteria = [item.criterion for item in self.items]
        if len(set(criteria)) < len(criteria):
            raise refuse("a criterion stands twice in the items")
        positions = [item.position for item in self.items]
        if any(a >= b for a, b in zip(positions, positions[1:], strict=False)):
            raise refuse("the positions of the items must rise")
        return self


class RespondentRow(Row):
    """Who replies."""

    slug: Slug
    name: Name
    kind: Literal["model", "reference", "floor"]
    family: Short
    config: Free


class ReplyRow(Row):
    """What a respondent wrote, one text per place."""

    collection: Slug
    conversation: ConversationKey
    respondent: Slug
    sample: Small
    turns: Annotated[list[str], Field(min_length=1)]
    outcome: Literal["answered", "refused", "filtered", "truncated", "empty"]
    finish_reason: Short
    returned_model: Long
    authors: list[Name]
    source: Free
    replied_on: Day | None
    created_at: Moment

    @model_validator(mode="after")
    def _answered_says_something(self) -> Self:
        if self.outcome == "answered" and not any(text.strip() for text in self.turns):
            raise refuse("the text is empty, so the outcome is not answered")
        return self

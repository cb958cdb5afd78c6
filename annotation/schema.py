"""The rows of the tables of labels, and how events become labels. No Django here."""

import hashlib
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from corpus.schema.fields import (
    Big,
    ConversationKey,
    CriterionKey,
    Free,
    Moment,
    Name,
    Numbered,
    Pseudonym,
    Row,
    Slug,
    Small,
    Spoken,
    Whole,
    refuse,
)

Answer = Literal["met", "not_met", "cannot_tell"]
AnswerReason = Literal[
    "", "reply_ambiguous", "criterion_unclear", "not_applicable", "outside_competence"
]
SlotNumber = Annotated[int, Field(ge=1, le=10)]


class AnnotatorRow(Row):
    """The person behind labels, by pseudonym."""

    pseudonym: Pseudonym


class MemberRow(Row):
    """An annotator of a round."""

    annotator: Pseudonym
    active: bool


class AskedRow(Row):
    """A criterion that is asked of an item."""

    criterion: CriterionKey
    inclusion_probability: Annotated[float, Field(gt=0, le=1)]


class ItemRow(Row):
    """One reply in a round."""

    conversation: ConversationKey
    respondent: Slug
    sample: Small
    occurrence: Small
    kind: Literal["regular", "repeat", "gold"]
    reserved_for: Pseudonym | None
    rubric_version: Numbered
    position: Whole
    slots: list[SlotNumber]
    criteria: list[AskedRow]

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Return what tells items of a round apart."""
        return (self.conversation, self.respondent, self.sample, self.occurrence)

    @model_validator(mode="after")
    def _is_coherent(self) -> Self:
        if self.kind == "repeat" and self.reserved_for is None:
            raise refuse("a repeat is reserved for somebody")
        if self.slots != sorted(set(self.slots)):
            raise refuse("the slots must rise, each number once")
        asked = [row.criterion for row in self.criteria]
        if len(set(asked)) < len(asked):
            raise refuse("a criterion is asked twice")
        return self


class RoundRow(Row):
    """A labelling campaign with its items."""

    name: Name
    collection: Slug
    purpose: Literal["practice", "calibration", "audit"]
    guidelines: str
    overlap: Annotated[int, Field(ge=1, le=10)]
    status: Literal["draft", "open", "paused", "closed"]
    seed: Whole
    plan: Free
    created_at: Moment
    opened_at: Moment | None
    closed_at: Moment | None
    members: list[MemberRow]
    items: list[ItemRow]

    @model_validator(mode="after")
    def _lists_are_sorted(self) -> Self:
        members = [row.annotator for row in self.members]
        if members != sorted(set(members)):
            raise refuse("the members must be sorted by annotator, each once")
        keys = [item.key for item in self.items]
        if len(set(keys)) < len(keys):
            raise refuse("a reply stands twice in the items with the same occurrence")
        places = [(item.position, *item.key) for item in self.items]
        if places != sorted(places):
            raise refuse("the items must be sorted by position")
        return self


class _OfReply(Row):
    round: Name
    conversation: ConversationKey
    respondent: Slug
    sample: Small


class _OfAssignment(_OfReply):
    occurrence: Small
    annotator: Pseudonym


class AssignmentEventRow(Row):
    """What happened to an assignment."""

    kind: Literal[
        "claimed", "lapsed", "resumed", "submitted", "reopened", "skipped", "declined", "surplus"
    ]
    at: Moment


class AssignmentRow(_OfAssignment):
    """One annotator's work on one item."""

    state: Literal["active", "submitted", "lapsed", "skipped", "declined", "surplus"]
    slot: SlotNumber | None
    position: Whole
    lease_until: Moment | None
    claimed_at: Moment
    started_at: Moment | None
    submitted_at: Moment | None
    active_seconds: Whole
    events: list[AssignmentEventRow]

    @model_validator(mode="after")
    def _is_coherent(self) -> Self:
        if (self.state in {"active", "submitted"}) != (self.slot is not None):
            raise refuse("active and submitted work holds a slot, and nothing else does")
        if self.state == "active" and self.lease_until is None:
            raise refuse("active work has a lease_until")
        if self.state == "submitted" and self.submitted_at is None:
            raise refuse("submitted work has a submitted_at")
        return self


class QuoteRow(Row):
    """Words of the reply: text number `turn`, from character `start` on."""

    turn: Small
    start: Whole
    text: Annotated[str, StringConstraints(min_length=1)]


class _Answered(_OfAssignment):
    criterion: CriterionKey
    value: Answer | None
    reason: AnswerReason
    quotes: list[QuoteRow]

    @model_validator(mode="after")
    def _reason_belongs_to_cannot_tell(self) -> Self:
        if self.reason and self.value != "cannot_tell":
            raise refuse("only cannot_tell has a reason")
        return self


def comment_digest(comment: str) -> str:
    """Return what the log keeps of a comment: its SHA-256, or nothing for none."""
    return hashlib.sha256(comment.encode("utf-8")).hexdigest() if comment else ""


def _no_digest_or_digest(value: str) -> str:
    if value and (len(value) != 64 or set(value) - set("0123456789abcdef")):
        raise refuse("must be empty or a SHA-256 in 64 small hexadecimal digits")
    return value


class LabelEventRow(_Answered):
    """One click or edit, as it reached the server."""

    order: Numbered
    client: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    seq: Big
    comment: str | None
    comment_digest: Annotated[str, AfterValidator(_no_digest_or_digest)]
    at: Moment

    @model_validator(mode="after")
    def _digest_is_of_the_comment(self) -> Self:
        if self.comment is None:
            if not self.comment_digest:
                raise refuse("a redacted comment keeps its comment_digest")
        elif comment_digest(self.comment) != self.comment_digest:
            raise refuse("comment_digest is not the SHA-256 of the comment")
        return self


class LabelRow(_Answered):
    """The current answer of one annotator for one criterion."""

    comment: str
    updated_at: Moment


class AdjudicationRow(_OfReply):
    """The decision on a disputed unit."""

    criterion: CriterionKey
    order: Numbered
    value: Literal["met", "not_met", "unresolvable"]
    reason: Spoken
    confidence: Literal["low", "medium", "high"]
    criterion_at_fault: bool
    adjudicator: Pseudonym
    at: Moment


A = TypeVar("A")


@dataclass(slots=True)
class Replay(Generic[A]):
    """Events of one assignment, folded: a lower seq of the same client never wins."""

    answers: dict[str, A] = field(default_factory=dict)
    _newest: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, criterion: str, client: str, seq: int, answer: A) -> None:
        """Fold one event, in the order in which the server saw it."""
        if seq > self._newest.get((criterion, client), -1):
            self._newest[criterion, client] = seq
            self.answers[criterion] = answer

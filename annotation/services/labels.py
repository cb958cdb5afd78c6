"""Answers: each is an event in the log, and the label is what the log gives."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from annotation.models import (
    Annotator,
    Assignment,
    AssignmentEvent,
    Label,
    LabelEvent,
    LabelEventText,
    Reason,
    Round,
    RoundCriterion,
    Value,
)
from annotation.services import slots
from annotation.services.claims import locked_assignment
from annotation.services.text import checked_text

MAX_COMMENT = 10_000
MAX_CLIENT = 64
MAX_SEQ = 2**62
MAX_QUOTES = 100
_RELOAD = "Please reload the page."

State = Assignment.State
Kind = AssignmentEvent.Kind


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The label as it stands after a save, and whether this save changed it."""

    label: Label | None
    applied: bool
    assignment: Assignment


def save_label(
    *,
    assignment_id: int,
    annotator: Annotator,
    criterion_id: int,
    client: str,
    seq: int,
    value: str | None,
    reason: str = "",
    comment: str = "",
    quotes: Sequence[Mapping[str, Any]] = (),
) -> SaveResult:
    """Keep one answer.

    The same (client, seq) again changes nothing; with another answer it is refused, as nobody
    could tell which was meant. A lower seq of the same client is logged and never wins; between
    clients the server's order counts. Work that had lapsed or was skipped takes a slot again where
    one is free; where none is, the answers are kept all the same.
    """
    _check_answer(client, seq, value, reason, comment)
    with transaction.atomic():
        assignment = locked_assignment(assignment_id, annotator)
        events = LabelEvent.objects.filter(assignment=assignment, client=client)
        known = events.filter(seq=seq).first()
        if known is not None:
            sent = (criterion_id, value, reason, comment_digest(comment))
            if sent != (known.criterion_id, known.value, known.reason, known.comment_digest):
                raise ValidationError("This number was used for another answer. " + _RELOAD)
            return SaveResult(_label(assignment, criterion_id), False, assignment)
        if assignment.state == State.SUBMITTED:
            raise ValidationError("This reply is submitted. Open it again to change an answer.")
        if assignment.state == State.SURPLUS:
            raise ValidationError("This reply is submitted already.")
        if assignment.state == State.DECLINED:
            raise ValidationError("You have declined this reply.")
        if assignment.round_item.round.status == Round.Status.CLOSED:
            raise ValidationError("This round is closed and takes no more answers.")
        asked = RoundCriterion.objects.filter(round_item=assignment.round_item_id)
        # Compared here, as a database refuses to compare with a number beyond its range.
        if criterion_id not in asked.values_list("criterion_id", flat=True):
            raise ValidationError("This criterion is not asked of this reply.")
        kept = checked_quotes(quotes, assignment.round_item.reply.turns)
        now = timezone.now()
        late = events.filter(criterion=criterion_id, seq__gt=seq).exists()
        event = LabelEvent.objects.create(
            assignment=assignment,
            criterion_id=criterion_id,
            client=client,
            seq=seq,
            value=value,
            reason=reason,
            comment_digest=comment_digest(comment),
            quotes=kept,
            at=now,
        )
        if comment:
            LabelEventText.objects.create(event=event, comment=comment)
        if not late:
            Label.objects.update_or_create(
                assignment=assignment,
                criterion_id=criterion_id,
                defaults={
                    "value": value,
                    "reason": reason,
                    "comment": comment,
                    "quotes": kept,
                    "updated_at": now,
                },
            )
        _hold(assignment, now)
        return SaveResult(_label(assignment, criterion_id), not late, assignment)


@transaction.atomic
def submit_assignment(*, assignment_id: int, annotator: Annotator) -> Assignment:
    """Submit finished work; it counts from now on, unless its slot has gone to somebody else."""
    assignment = locked_assignment(assignment_id, annotator)
    if assignment.state in {State.SUBMITTED, State.SURPLUS}:
        return assignment
    if assignment.state == State.DECLINED:
        raise ValidationError("You have declined this reply.")
    if assignment.round_item.round.status == Round.Status.CLOSED:
        raise ValidationError("This round is closed and takes no more answers.")
    if not slots.is_member(assignment.round_item.round_id, annotator.pk):
        raise ValidationError("You do not label in this round any more. Your answers are kept.")
    _require_complete(assignment)
    now = timezone.now()
    if assignment.state in {State.LAPSED, State.SKIPPED} and not slots.try_resume(assignment, now):
        _keep_as_surplus(assignment)
    assignment.submitted_at = now
    if assignment.state == State.ACTIVE:
        assignment.state = State.SUBMITTED
        assignment.lease_until = None
    assignment.save(update_fields=["state", "submitted_at", "lease_until"])
    slots.record(assignment, Kind.SUBMITTED)
    return assignment


@transaction.atomic
def reopen_assignment(*, assignment_id: int, annotator: Annotator) -> Assignment:
    """Open submitted work again while its round is open; it does not count until submitted."""
    assignment = locked_assignment(assignment_id, annotator)
    if assignment.state == State.ACTIVE:
        return assignment
    if assignment.state != State.SUBMITTED:
        raise ValidationError("Only a submitted reply can be opened again.")
    if assignment.round_item.round.status != Round.Status.OPEN:
        raise ValidationError("A reply can be opened again only while its round is open.")
    if not slots.is_member(assignment.round_item.round_id, annotator.pk):
        raise ValidationError("You do not label in this round any more.")
    assignment.state = State.ACTIVE
    assignment.submitted_at = None
    assignment.lease_until = slots.lease_end(assignment, timezone.now())
    assignment.save(update_fields=["state", "submitted_at", "lease_until"])
    slots.record(assignment, Kind.REOPENED)
    return assignment


def comment_digest(comment: str) -> str:
    """Return the SHA-256 that the log keeps of a comment; empty where there is none."""
    return hashlib.sha256(comment.encode("utf-8")).hexdigest() if comment else ""


def checked_quotes(
    quotes: Sequence[Mapping[str, Any]], texts: Sequence[str]
) -> list[dict[str, Any]]:
    """Return quotes that stand in the reply as they say; offsets count code points."""
    kept: list[dict[str, Any]] = []
    if not isinstance(quotes, list | tuple) or len(quotes) > MAX_QUOTES:
        raise ValidationError(f"Quotes are a list of at most {MAX_QUOTES}.")
    for quote in quotes:
        if not isinstance(quote, Mapping):
            raise ValidationError("A quote needs turn, start and text.")
        turn, start, text = quote.get("turn"), quote.get("start"), quote.get("text")
        if type(turn) is not int or type(start) is not int or not isinstance(text, str) or not text:
            raise ValidationError("A quote needs turn, start and text.")
        if not 0 <= turn < len(texts) or start < 0:
            raise ValidationError("A quote lies outside the reply.")
        if texts[turn][start : start + len(text)] != text:
            raise ValidationError("A quote differs from the reply at its place.")
        kept.append({"turn": turn, "start": start, "text": text})
    return kept


def _check_answer(client: str, seq: int, value: str | None, reason: str, comment: str) -> None:
    checked_text(client, MAX_CLIENT, "client")
    if not client or type(seq) is not int or not 0 <= seq <= MAX_SEQ:
        raise ValidationError("The save is not numbered as it should be. " + _RELOAD)
    if value is not None and value not in Value.values:
        raise ValidationError("An answer is met, not met or cannot tell.")
    if reason != "" and (value != Value.CANNOT_TELL or reason not in Reason.values):
        raise ValidationError("A reason belongs to the answer cannot tell.")
    checked_text(comment, MAX_COMMENT, "comment")


def _label(assignment: Assignment, criterion_id: int) -> Label | None:
    return Label.objects.filter(assignment=assignment, criterion_id=criterion_id).first()


def _hold(assignment: Assignment, now: datetime) -> None:
    """Keep the slot for work that goes on, or take one again where one is free."""
    if assignment.started_at is None:
        assignment.started_at = now
        assignment.save(update_fields=["started_at"])
    if assignment.state == State.ACTIVE:
        assignment.lease_until = slots.lease_end(assignment, now)
        assignment.save(update_fields=["lease_until"])
    elif slots.may_resume(assignment):
        slots.try_resume(assignment, now)


def _keep_as_surplus(assignment: Assignment) -> None:
    assignment.state = State.SURPLUS
    assignment.save(update_fields=["state"])
    slots.record(assignment, Kind.SURPLUS)


def _require_complete(assignment: Assignment) -> None:
    labels = {label.criterion_id: label for label in assignment.labels.all()}
    missing = []
    for asked in assignment.round_item.asked.select_related("criterion"):
        label = labels.get(asked.criterion_id)
        if label is None or label.value is None:
            missing.append(asked.criterion.text)
        elif label.value == Value.CANNOT_TELL and not label.reason:
            missing.append(f"{asked.criterion.text} (why can you not tell?)")
    if missing:
        raise ValidationError([f"Still open: {text}" for text in missing])

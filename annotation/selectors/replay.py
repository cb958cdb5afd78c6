"""The labels as their log gives them, and whether the stored ones are the same."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import QuerySet

from annotation.models import Assignment, Label, LabelEvent


@dataclass(frozen=True, slots=True)
class LabelState:
    """What a label says."""

    value: str | None
    reason: str
    comment: str
    quotes: tuple[tuple[int, int, str], ...]


class Event(Protocol):
    """What replay needs of an event."""

    criterion_id: int
    client: str
    seq: int
    value: str | None
    reason: str
    quotes: Any


def replay(events: Iterable[tuple[Event, str]]) -> dict[int, LabelState]:
    """Apply (event, comment) pairs in the server's order; returns the state by criterion id.

    An event counts unless the same client has already sent a later one for the same criterion.
    """
    state: dict[int, LabelState] = {}
    newest: dict[tuple[int, str], int] = {}
    for event, comment in events:
        key = (event.criterion_id, event.client)
        if event.seq <= newest.get(key, -1):
            continue
        newest[key] = event.seq
        state[event.criterion_id] = LabelState(
            event.value, event.reason, comment, _quotes(event.quotes)
        )
    return state


def replay_labels(assignment_id: int) -> dict[int, LabelState]:
    """Return the labels of an assignment from its log alone."""
    return replay(_events(assignment_id))


def verify_assignments(assignments: QuerySet[Assignment]) -> Iterator[dict[str, Any]]:
    """Yield each way in which stored labels differ from their log."""
    for assignment in assignments.order_by("id").iterator(chunk_size=200):
        named = {"assignment": assignment.pk}
        yield from ({**named, **fault} for fault in _broken_comments(assignment))
        expected = replay_labels(assignment.pk)
        labels = Label.objects.filter(assignment=assignment).order_by("criterion_id")
        stored = {
            label.criterion_id: LabelState(
                label.value, label.reason, label.comment, _quotes(label.quotes)
            )
            for label in labels
        }
        for criterion in sorted(expected.keys() | stored.keys()):
            if expected.get(criterion) != stored.get(criterion):
                yield {
                    **named,
                    "criterion": criterion,
                    "fault": "the label is not what its log gives",
                    "log": _shown(expected.get(criterion)),
                    "label": _shown(stored.get(criterion)),
                }


def _events(assignment_id: int) -> Iterator[tuple[LabelEvent, str]]:
    rows = LabelEvent.objects.filter(assignment=assignment_id).select_related("text")
    for event in rows.order_by("id"):
        text = getattr(event, "text", None)
        yield event, text.comment if text is not None else ""


def _broken_comments(assignment: Assignment) -> Iterator[dict[str, Any]]:
    for event, comment in _events(assignment.pk):
        text = getattr(event, "text", None)
        if text is not None and text.redacted_at is not None:
            continue
        found = hashlib.sha256(comment.encode("utf-8")).hexdigest() if comment else ""
        if found != event.comment_digest:
            yield {
                "criterion": event.criterion_id,
                "fault": "the comment does not have the digest of its log",
                "log": event.comment_digest,
                "label": found,
            }


def _quotes(quotes: Any) -> tuple[tuple[int, int, str], ...]:
    return tuple((quote["turn"], quote["start"], quote["text"]) for quote in quotes or [])


def _shown(state: LabelState | None) -> str:
    if state is None:
        return "nothing"
    return " ".join(part for part in (state.value or "open", state.reason) if part)

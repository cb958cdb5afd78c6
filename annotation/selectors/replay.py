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
    for pk in assignments.order_by("id").values_list("id", flat=True).iterator(chunk_size=2000):
        faults = _faults(pk)
        # Somebody may have saved between the reads; what is broken is found again.
        if faults and _faults(pk) != faults:
            faults = _faults(pk)
        yield from ({"assignment": pk, **fault} for fault in faults)


def _faults(assignment_id: int) -> list[dict[str, Any]]:
    events = list(_events(assignment_id))
    expected = replay(events)
    stored = {
        label.criterion_id: LabelState(
            label.value, label.reason, label.comment, _quotes(label.quotes)
        )
        for label in Label.objects.filter(assignment=assignment_id)
    }
    faults = [fault for event, text in events if (fault := _broken_comment(event, text))]
    for criterion in sorted(expected.keys() | stored.keys()):
        log, label = expected.get(criterion), stored.get(criterion)
        if log != label:
            faults.append(
                {
                    "criterion": criterion,
                    "fault": _difference(log, label),
                    "log": _shown(log),
                    "label": _shown(label),
                }
            )
    return faults


def _events(assignment_id: int) -> Iterator[tuple[LabelEvent, str]]:
    rows = LabelEvent.objects.filter(assignment=assignment_id).select_related("text")
    for event in rows.order_by("id"):
        text = getattr(event, "text", None)
        yield event, text.comment if text is not None else ""


def _broken_comment(event: LabelEvent, comment: str) -> dict[str, Any] | None:
    text = getattr(event, "text", None)
    if text is not None and text.redacted_at is not None:
        return None
    found = hashlib.sha256(comment.encode("utf-8")).hexdigest() if comment else ""
    if found == event.comment_digest:
        return None
    return {
        "criterion": event.criterion_id,
        "fault": "the comment does not have the digest of its log",
        "log": event.comment_digest,
        "label": found,
    }


def _quotes(quotes: Any) -> tuple[tuple[int, int, str], ...]:
    try:
        return tuple((quote["turn"], quote["start"], quote["text"]) for quote in quotes or [])
    except (KeyError, TypeError):
        # Not what a save writes: shown as it is, so that it differs from what the log gives.
        return ((-1, -1, repr(quotes)),)


def _difference(log: LabelState | None, label: LabelState | None) -> str:
    if label is None:
        return "the log gives a label, and there is none"
    if log is None:
        return "the label has no event in the log"
    parts = ("value", "reason", "comment", "quotes")
    differing = [part for part in parts if getattr(log, part) != getattr(label, part)]
    return f"the label is not what its log gives: {', '.join(differing)}"


def _shown(state: LabelState | None) -> str:
    """Return the answer alone; what somebody wrote in a comment is not printed."""
    if state is None:
        return "nothing"
    return " ".join(part for part in (state.value or "open", state.reason) if part)

"""What the labelling page shows, from the selectors' rows to words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.db.models import Count

from annotation import selectors, services
from annotation.guidelines import render_guidelines
from annotation.models import Assignment, Label, Reason, Round, RoundCriterion, Value
from annotation.selectors import LabellingPage, RoundProgress
from annotation.wording import duration_words
from corpus.models import Criterion

State = Assignment.State
# A first guess where nobody has labelled yet: words read a minute, seconds for each criterion.
WORDS_A_MINUTE = 220
SECONDS_A_CRITERION = 15
SECONDS_A_READING = 90


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One turn with its paragraphs; the text itself stays as it was written."""

    number: int
    kind: str
    paragraphs: list[str]
    part: int
    parts: int


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """One criterion with the answer as the form shows it."""

    criterion: Criterion
    value: str
    reason: str
    reason_words: str
    comment: str
    state: str
    words: str

    @property
    def prefix(self) -> str:
        """Return what the ids of the criterion's inputs start with."""
        return f"answer-{self.criterion.pk}"

    @property
    def is_open(self) -> bool:
        """Return whether something is missing before the reply can be submitted."""
        return self.state != "saved"


def is_editable(assignment: Assignment) -> bool:
    """Return whether answers may change: what lapsed or was skipped is taken up by answering."""
    if assignment.round_item.round.status == Round.Status.CLOSED:
        return False
    return assignment.state in {State.ACTIVE, State.LAPSED, State.SKIPPED}


def paragraphs_of(text: str) -> list[str]:
    """Return the paragraphs of a text; single line breaks and indents stay inside them."""
    parts = re.split(r"\r?\n(?:[ \t]*\r?\n)+", text.strip("\r\n"))
    return [part for part in parts if part.strip()]


def shown_entry(criterion: Criterion, label: Label | None) -> ShownEntry:
    """Return a criterion with its answer, and whether that is saved and enough."""
    if label is None or (label.value is None and not label.comment):
        return ShownEntry(criterion, "", "", "", "", "", "")
    state, words = "saved", "Saved"
    if label.value is None:
        state, words = "open", "Comment saved"
    elif label.value == Value.CANNOT_TELL and not label.reason:
        state, words = "open", "Saved. Reason needed."
    reason_words = Reason(label.reason).label if label.reason else ""
    return ShownEntry(
        criterion, label.value or "", label.reason, reason_words, label.comment, state, words
    )


def _entries(shown: LabellingPage) -> Iterator[ShownEntry]:
    for group in shown.groups:
        for entry in group.entries:
            yield shown_entry(entry.criterion, entry.label)


def open_entries(assignment: Assignment) -> list[ShownEntry]:
    """Return the criteria that still need an answer, or a reason."""
    shown = selectors.labelling_page(assignment)
    return [entry for entry in _entries(shown) if entry.is_open]


def _estimate(shown: LabellingPage) -> float:
    texts = [turn.text for turn in shown.turns]
    texts += [entry.criterion.text for group in shown.groups for entry in group.entries]
    words = sum(len(text.split()) for text in texts)
    return 60 * words / WORDS_A_MINUTE + SECONDS_A_CRITERION * shown.total


def with_durations(rounds: Sequence[RoundProgress]) -> list[tuple[RoundProgress, str]]:
    """Return each round with how long one reply takes, guessed from its criteria at first."""
    unknown = [item.round.pk for item in rounds if item.seconds is None]
    asked = RoundCriterion.objects.filter(round_item__round__in=unknown).order_by()
    means = {
        round_id: criteria / items
        for round_id, criteria, items in asked.values_list("round_item__round").annotate(
            criteria=Count("id"), items=Count("round_item", distinct=True)
        )
    }
    guesses = {pk: SECONDS_A_READING + SECONDS_A_CRITERION * n for pk, n in means.items()}
    return [
        (item, duration_words(item.seconds or guesses.get(item.round.pk, SECONDS_A_READING)))
        for item in rounds
    ]


def assignment_context(assignment: Assignment) -> dict[str, Any]:
    """Return what the page of one assignment shows; nothing in it tells whose reply it is."""
    shown = selectors.labelling_page(assignment)
    conversation = assignment.round_item.reply.conversation
    round_ = assignment.round_item.round
    return {
        "assignment": assignment,
        "round": round_,
        # How many replies of the round this person has begun.
        "place": assignment.position,
        "heading": conversation.subcategory.name if conversation.subcategory else "Conversation",
        "duration": duration_words(_estimate(shown)),
        "editable": is_editable(assignment),
        "guidelines": render_guidelines(round_.guidelines),
        "turns": [
            ShownTurn(turn.number, turn.kind, paragraphs_of(turn.text), turn.part, turn.parts)
            for turn in shown.turns
        ],
        "parts": [turn.part for turn in shown.turns if turn.kind == "judged"],
        "groups": [
            {
                "dimension": group.dimension,
                "entries": [shown_entry(entry.criterion, entry.label) for entry in group.entries],
            }
            for group in shown.groups
        ],
        "reasons": Reason.choices,
        "done": shown.done,
        "total": shown.total,
        "left": shown.total - shown.done,
    }


def keep(assignment: Assignment, criterion_id: int, answer: Mapping[str, Any]) -> None:
    """Save one answer; a request without JavaScript is a client of its own."""
    # Not criterion=: a number from the URL may be larger than any column.
    label = Label.objects.filter(assignment=assignment, criterion__pk__exact=criterion_id).first()
    services.save_label(
        assignment_id=assignment.pk,
        annotator=assignment.annotator,
        criterion_id=criterion_id,
        client=answer["client"] or f"form-{uuid4().hex}",
        seq=answer["seq"] if answer["client"] else 1,
        value=answer["value"] or None,
        reason=answer["reason"],
        comment=answer["comment"],
        # The form does not carry quotes, so those that are there stay.
        quotes=label.quotes if label else (),
    )


def saved_context(assignment: Assignment, criterion_id: int, problem: str) -> dict[str, Any]:
    """Return what a save brings back to the page: one answer's state and the page's."""
    shown = selectors.labelling_page(assignment)
    entry = next((e for e in _entries(shown) if e.criterion.pk == criterion_id), None)
    context: dict[str, Any] = {
        "criterion_id": criterion_id,
        "state": "failed" if problem or entry is None else entry.state,
        "words": f"Not saved. {problem}" if problem else entry.words if entry else "Not saved.",
        "done": shown.done,
        "total": shown.total,
        "left": shown.total - shown.done,
    }
    said = f"{context['words'].rstrip('.')}. {shown.done} of {shown.total} answered."
    return context | {"announcement": said}


def why_nothing_left(progress: RoundProgress) -> str:
    """Say in words why a round has nothing more for this person now."""
    status = progress.round.status
    if status == Round.Status.PAUSED:
        return "The researchers have paused this round. What you did is kept."
    if status == Round.Status.CLOSED:
        return "This round is closed. Thank you for your work on it."
    if progress.available:
        return (
            "What is left here is with others at the moment, or you have skipped it before."
            " You can try again later."
        )
    if progress.done:
        return (
            "Every reply of this round is with somebody or done."
            " Thank you. If one comes free, it appears under “My rounds”."
        )
    return (
        "Others are labelling every reply of this round."
        " If one comes free, it appears under “My rounds”."
    )

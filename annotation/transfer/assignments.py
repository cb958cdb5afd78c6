"""Assignments, into and out of a bundle; submitted ones are submitted after their labels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from annotation.models import Assignment, AssignmentEvent, Round
from annotation.schema import AssignmentRow
from annotation.transfer.index import AnnotationIndex, KnownAssignment
from annotation.transfer.rounds import rounds_in
from corpus.models import Conversation
from corpus.schema.fields import moment_text, parse_moment, parse_moment_or_none
from corpus.transfer.conversations import BATCH
from corpus.transfer.table import CHUNK, Key, LateProblem, Problem, Scope, Table, in_chunks, written

ASSIGNMENT_KEY = ("round", "conversation", "respondent", "sample", "occurrence", "annotator")


def round_batches(scope: Scope) -> Iterator[tuple[Round, list[int]]]:
    """Yield rounds with some of their conversations, sorted by key."""
    for one in rounds_in(scope):
        found = Conversation.objects.filter(replies__round_items__round=one).order_by()
        pairs = sorted(set(found.values_list("key", "pk")))
        for batch in in_chunks(pairs, BATCH):
            yield one, [pk for _, pk in batch]


class AssignmentTable(Table[AssignmentRow]):
    """Who worked on what."""

    name: ClassVar[str] = "assignments"
    key: ClassVar[tuple[str, ...]] = ASSIGNMENT_KEY
    row = AssignmentRow

    def __init__(self, index: AnnotationIndex) -> None:
        self._index = index
        self._submitted: list[tuple[int, AssignmentRow]] = []
        self._to_submit: dict[bool, list[int]] = {False: [], True: []}

    def stored(self, rows: Sequence[AssignmentRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored assignments."""
        pks = []
        for row in rows:
            known = self._index.assignment(row.round, item_key(row), row.annotator)
            if known is not None and known.pk is not None:
                pks.append(known.pk)
        return {
            tuple(row[part] for part in ASSIGNMENT_KEY): row
            for row in _rows(Assignment.objects.filter(pk__in=pks))
        }

    def problems(self, row: AssignmentRow, line: int) -> Iterator[Problem]:
        """Refuse work on nothing, by nobody, or in a place that is taken."""
        if row.annotator not in self._index.annotators:
            yield "annotator", row.annotator, "there is no such annotator"
        if self._index.round(row.round) is None:
            yield "round", row.round, "there is no such round"
            return
        if self._index.is_broken(row.round):
            return
        item = self._index.item(row.round, item_key(row))
        if item is None:
            yield "respondent", row.respondent, "the round has no such item"
            return
        if item.reserved_for is not None and item.reserved_for != row.annotator:
            yield "annotator", row.annotator, f"the item is reserved for {item.reserved_for}"
        if row.slot is not None and row.slot not in item.slots:
            yield "slot", row.slot, "the item has no such slot"
        elif row.slot in item.held:
            yield "slot", row.slot, "somebody else holds this slot"

    def admit(self, row: AssignmentRow, line: int) -> None:
        """Remember an assignment and the slot that it holds."""
        item = self._index.item(row.round, item_key(row))
        if item is None:
            return
        if row.slot is not None:
            item.held.add(row.slot)
        item.assignments[row.annotator] = KnownAssignment(None, stored=False)
        if row.state == "submitted":
            slim = row.model_copy(update={"events": []})
            self._submitted.append((line, slim))

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused assignment."""
        key = (raw["conversation"], raw["respondent"], raw["sample"], raw["occurrence"])
        item = self._index.item(raw["round"], key)
        if item is not None:
            known = KnownAssignment(None, stored=False, broken=True)
            item.assignments.setdefault(raw["annotator"], known)

    def finish(self) -> Iterator[LateProblem]:
        """Refuse submitted work with an open criterion."""
        for line, row in self._submitted:
            item = self._index.item(row.round, item_key(row))
            if item is None or item.asked is None:
                continue
            known = item.assignments[row.annotator]
            missing = len(item.asked) - known.complete
            if missing and not known.broken:
                reason = f"submitted, but {missing} of {len(item.asked)} criteria have no answer"
                yield line, "state", row.state, reason

    def write(self, rows: Callable[[], Iterator[list[AssignmentRow]]]) -> None:
        """Insert assignments; submitted ones stay active until their labels are there."""
        for chunk in rows():
            made = Assignment.objects.bulk_create(self._made(row) for row in chunk)
            AssignmentEvent.objects.bulk_create(
                AssignmentEvent(assignment=one, kind=event.kind, at=parse_moment(event.at))
                for row, one in zip(chunk, made, strict=True)
                for event in row.events
            )
            for row, one in zip(chunk, made, strict=True):
                known = self._index.assignment(row.round, item_key(row), row.annotator)
                assert known is not None
                known.pk = one.pk
                if row.state == "submitted":
                    self._to_submit[row.lease_until is None].append(one.pk)

    def _made(self, row: AssignmentRow) -> Assignment:
        item = self._index.item(row.round, item_key(row))
        assert item is not None
        lease = row.lease_until
        if row.state == "submitted" and lease is None:
            lease = row.claimed_at
        return Assignment(
            round_item_id=written(item.pk),
            slot_id=item.slots[row.slot] if row.slot is not None else None,
            annotator_id=written(self._index.annotators[row.annotator]),
            state="active" if row.state == "submitted" else row.state,
            lease_until=parse_moment_or_none(lease),
            position=row.position,
            claimed_at=parse_moment(row.claimed_at),
            started_at=parse_moment_or_none(row.started_at),
            submitted_at=parse_moment_or_none(row.submitted_at),
            active_seconds=row.active_seconds,
        )

    def complete(self) -> Iterator[LateProblem]:
        """Submit what was submitted."""
        for without_lease, pks in self._to_submit.items():
            change: dict[str, Any] = {"state": "submitted"}
            if without_lease:
                change["lease_until"] = None
            for chunk in in_chunks(pks, CHUNK):
                Assignment.objects.filter(pk__in=chunk).update(**change)
        yield from ()

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the assignments."""
        for one, conversations in round_batches(scope):
            rows = _rows(
                Assignment.objects.filter(
                    round_item__round=one, round_item__reply__conversation__in=conversations
                )
            )
            yield from sorted(rows, key=lambda row: tuple(row[part] for part in ASSIGNMENT_KEY))


def item_key(row: Any) -> tuple[str, str, int, int]:
    """Return the item that a row of an assignment is about."""
    return (row.conversation, row.respondent, row.sample, row.occurrence)


def _rows(found: Any) -> list[dict[str, Any]]:
    chosen = found.order_by().select_related(
        "annotator",
        "slot",
        "round_item__round",
        "round_item__reply__conversation",
        "round_item__reply__respondent",
    )
    rows: dict[int, dict[str, Any]] = {}
    for one in chosen.defer(
        "round_item__reply__turns",
        "round_item__reply__source",
        "round_item__reply__conversation__turns",
        "round_item__reply__conversation__source",
        "round_item__round__guidelines",
        "round_item__round__plan",
    ):
        reply = one.round_item.reply
        rows[one.pk] = {
            "round": one.round_item.round.name,
            "conversation": reply.conversation.key,
            "respondent": reply.respondent.slug,
            "sample": reply.sample,
            "occurrence": one.round_item.occurrence,
            "annotator": one.annotator.pseudonym,
            "state": one.state,
            "slot": one.slot.number if one.slot else None,
            "position": one.position,
            "lease_until": moment_text(one.lease_until),
            "claimed_at": moment_text(one.claimed_at),
            "started_at": moment_text(one.started_at),
            "submitted_at": moment_text(one.submitted_at),
            "active_seconds": one.active_seconds,
            "events": [],
        }
    for chunk in in_chunks(rows):
        events = AssignmentEvent.objects.filter(assignment__in=chunk).order_by("id")
        for pk, kind, at in events.values_list("assignment_id", "kind", "at"):
            rows[pk]["events"].append({"kind": kind, "at": moment_text(at)})
    return list(rows.values())

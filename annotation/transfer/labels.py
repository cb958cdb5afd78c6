"""Labels with their log, and adjudications, into and out of a bundle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from django.db.models import QuerySet
from django.utils import timezone

from annotation.models import Adjudication, Label, LabelEvent, LabelEventText
from annotation.schema import AdjudicationRow, LabelEventRow, LabelRow, comment_digest
from annotation.transfer.assignments import ASSIGNMENT_KEY, item_key, round_batches
from annotation.transfer.index import AnnotationIndex, KnownAssignment
from corpus.schema import canonical_json
from corpus.schema.fields import moment_text, parse_moment
from corpus.transfer.table import Key, LateProblem, Problem, Scope, Table, written

Answered = TypeVar("Answered", LabelEventRow, LabelRow)

# How events are signed that are made of labels without a log.
IMPORT_CLIENT = "import"
_STORED = "the assignment is stored already, without this row"


class _OfAssignments(Table[Answered]):
    """What labels and their events share."""

    def __init__(self, index: AnnotationIndex) -> None:
        self._index = index

    def _known(self, row: Answered) -> KnownAssignment | None:
        return self._index.assignment(row.round, item_key(row), row.annotator)

    def _stored_pks(self, rows: Sequence[Answered]) -> dict[int, Key]:
        pks = {}
        for row in rows:
            known = self._known(row)
            if known is not None and known.stored and known.pk is not None:
                pks[known.pk] = tuple(getattr(row, part) for part in ASSIGNMENT_KEY)
        return pks

    def _pk(self, row: Answered) -> int:
        known = self._known(row)
        assert known is not None
        assert known.pk is not None
        return known.pk

    def _criterion_pk(self, row: Answered) -> int:
        known = self._index.round(row.round)
        assert known is not None
        conversation = self._index.corpus.conversation(known.collection, row.conversation)
        assert conversation is not None
        return written(conversation.criteria[row.criterion])

    def problems(self, row: Answered, line: int) -> Iterator[Problem]:
        """Refuse an answer that nobody was asked for, and words that the reply does not say."""
        if self._index.round(row.round) is None:
            yield "round", row.round, "there is no such round"
            return
        if self._index.is_broken(row.round):
            return
        item = self._index.item(row.round, item_key(row))
        known = self._known(row)
        if item is None or known is None:
            yield "annotator", row.annotator, "there is no such assignment"
            return
        if known.stored:
            yield "annotator", row.annotator, _STORED
            return
        if item.asked is not None and row.criterion not in item.asked:
            yield "criterion", row.criterion, "this criterion is not asked of this reply"
        yield from self._index.wrong_quotes(row.round, item_key(row), row.quotes)
        yield from self._own_problems(row, known)

    def _own_problems(self, row: Answered, known: KnownAssignment) -> Iterator[Problem]:
        yield from ()


class LabelEventTable(_OfAssignments[LabelEventRow]):
    """Every click, as it reached the server."""

    name: ClassVar[str] = "label_events"
    key: ClassVar[tuple[str, ...]] = (*ASSIGNMENT_KEY, "order")
    row = LabelEventRow

    def stored(self, rows: Sequence[LabelEventRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored events."""
        self._index.has_events = True
        pks = self._stored_pks(rows)
        events = _events(LabelEvent.objects.filter(assignment__in=pks))
        return {tuple(row[part] for part in self.key): row for row in events}

    def _own_problems(self, row: LabelEventRow, known: KnownAssignment) -> Iterator[Problem]:
        if row.order != known.events + 1 and not known.broken:
            reason = f"the events of an assignment stand in order; here {known.events + 1} is next"
            yield "order", row.order, reason
        if (row.client, row.seq) in known.sent:
            yield "seq", row.seq, "the client has sent this number already"

    def admit(self, row: LabelEventRow, line: int) -> None:
        """Fold an event into its assignment."""
        known = self._known(row)
        if known is None:
            return
        known.events += 1
        known.sent.add((row.client, row.seq))
        answer = _fingerprint(row, row.comment or "", row.at)
        known.replay.add(row.criterion, row.client, row.seq, answer)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Say no more about an assignment with a refused event."""
        _break(self._index, raw)

    def write(self, rows: Callable[[], Iterator[list[LabelEventRow]]]) -> None:
        """Insert events, with their comments beside them."""
        for chunk in rows():
            made = LabelEvent.objects.bulk_create(
                LabelEvent(
                    assignment_id=self._pk(row),
                    criterion_id=self._criterion_pk(row),
                    client=row.client,
                    seq=row.seq,
                    value=row.value,
                    reason=row.reason,
                    comment_digest=row.comment_digest,
                    quotes=[quote.model_dump() for quote in row.quotes],
                    at=parse_moment(row.at),
                )
                for row in chunk
            )
            LabelEventText.objects.bulk_create(
                LabelEventText(
                    event=one,
                    comment=row.comment or "",
                    redacted_at=timezone.now() if row.comment is None else None,
                )
                for row, one in zip(chunk, made, strict=True)
                if row.comment_digest
            )

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the events."""
        for one, conversations in round_batches(scope):
            rows = _events(
                LabelEvent.objects.filter(
                    assignment__round_item__round=one,
                    assignment__round_item__reply__conversation__in=conversations,
                )
            )
            yield from sorted(rows, key=lambda row: tuple(row[part] for part in self.key))


class LabelTable(_OfAssignments[LabelRow]):
    """The current answers."""

    name: ClassVar[str] = "labels"
    key: ClassVar[tuple[str, ...]] = (*ASSIGNMENT_KEY, "criterion")
    row = LabelRow

    def stored(self, rows: Sequence[LabelRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored labels."""
        pks = self._stored_pks(rows)
        return {
            tuple(row[part] for part in self.key): row
            for row in _labels(Label.objects.filter(assignment__in=pks))
        }

    def _own_problems(self, row: LabelRow, known: KnownAssignment) -> Iterator[Problem]:
        if not self._index.has_events or known.broken:
            return
        answer = _fingerprint(row, row.comment, row.updated_at)
        if known.replay.answers.get(row.criterion) != answer:
            yield "value", row.value, "the label is not what its label_events add up to"

    def admit(self, row: LabelRow, line: int) -> None:
        """Count an answer."""
        known = self._known(row)
        if known is None:
            return
        known.replay.answers.pop(row.criterion, None)
        if row.value is not None and (row.value != "cannot_tell" or row.reason):
            known.complete += 1

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Say no more about an assignment with a refused label."""
        _break(self._index, raw)

    def finish(self) -> Iterator[LateProblem]:
        """Refuse events that no label shows."""
        for key, known in self._index.new_assignments():
            if not known.broken:
                for criterion in sorted(known.replay.answers):
                    reason = f"label_events answer {criterion}, and no label does: {list(key)}"
                    yield None, "criterion", criterion, reason

    def write(self, rows: Callable[[], Iterator[list[LabelRow]]]) -> None:
        """Insert labels; where they come without a log, the log is made of them."""
        if not self._index.has_events:
            self._write_events(rows)
        for chunk in rows():
            Label.objects.bulk_create(
                Label(
                    assignment_id=self._pk(row),
                    criterion_id=self._criterion_pk(row),
                    value=row.value,
                    reason=row.reason,
                    comment=row.comment,
                    quotes=[quote.model_dump() for quote in row.quotes],
                    updated_at=parse_moment(row.updated_at),
                )
                for row in chunk
            )

    def _write_events(self, rows: Callable[[], Iterator[list[LabelRow]]]) -> None:
        events = LabelEventTable(self._index)
        orders: dict[int, int] = {}

        def made() -> Iterator[list[LabelEventRow]]:
            for chunk in rows():
                found = []
                for row in chunk:
                    order = orders[self._pk(row)] = orders.get(self._pk(row), 0) + 1
                    found.append(
                        LabelEventRow(
                            **row.model_dump(exclude={"updated_at"}),
                            order=order,
                            client=IMPORT_CLIENT,
                            seq=order,
                            comment_digest=comment_digest(row.comment),
                            at=row.updated_at,
                        )
                    )
                yield found

        events.write(made)

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the labels."""
        for one, conversations in round_batches(scope):
            rows = _labels(
                Label.objects.filter(
                    assignment__round_item__round=one,
                    assignment__round_item__reply__conversation__in=conversations,
                )
            )
            yield from sorted(rows, key=lambda row: tuple(row[part] for part in self.key))


class AdjudicationTable(Table[AdjudicationRow]):
    """The decisions on disputed units."""

    name: ClassVar[str] = "adjudications"
    key: ClassVar[tuple[str, ...]] = (
        "round",
        "conversation",
        "respondent",
        "sample",
        "criterion",
        "order",
    )
    row = AdjudicationRow

    def __init__(self, index: AnnotationIndex) -> None:
        self._index = index
        self._orders: dict[Key, int] = {}

    def stored(self, rows: Sequence[AdjudicationRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored decisions."""
        rounds = [known.pk for row in rows if (known := self._index.round(row.round)) and known.pk]
        found = _adjudications(
            Adjudication.objects.filter(
                round__in=rounds, reply__conversation__key__in={row.conversation for row in rows}
            )
        )
        for row in found:
            unit = tuple(row[part] for part in self.key[:-1])
            self._orders[unit] = max(self._orders.get(unit, 0), row["order"])
        return {tuple(row[part] for part in self.key): row for row in found}

    def problems(self, row: AdjudicationRow, line: int) -> Iterator[Problem]:
        """Refuse a decision on what nobody was asked, or by nobody."""
        if row.adjudicator not in self._index.annotators:
            yield "adjudicator", row.adjudicator, "there is no such annotator"
        known = self._index.round(row.round)
        if known is None:
            yield "round", row.round, "there is no such round"
            return
        if known.broken:
            return
        unit = (row.conversation, row.respondent, row.sample)
        if row.criterion not in known.asked_of(unit):
            yield "criterion", row.criterion, "this unit is not asked in this round"
        following = self._orders.get(self.key_of(row)[:-1], 0) + 1
        if row.order != following:
            reason = f"the decisions on a unit stand in order; here {following} is next"
            yield "order", row.order, reason

    def admit(self, row: AdjudicationRow, line: int) -> None:
        """Count a decision on a unit."""
        self._orders[self.key_of(row)[:-1]] = row.order

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Count a refused decision."""
        self._orders[tuple(raw[part] for part in self.key[:-1])] = raw["order"]

    def write(self, rows: Callable[[], Iterator[list[AdjudicationRow]]]) -> None:
        """Insert decisions, in their order."""
        for chunk in rows():
            made = []
            for row in chunk:
                known = self._index.round(row.round)
                assert known is not None
                conversation = self._index.corpus.conversation(known.collection, row.conversation)
                assert conversation is not None
                made.append(
                    Adjudication(
                        round_id=written(known.pk),
                        reply_id=conversation.replies[row.respondent, row.sample],
                        criterion_id=written(conversation.criteria[row.criterion]),
                        value=row.value,
                        reason=row.reason,
                        confidence=row.confidence,
                        criterion_at_fault=row.criterion_at_fault,
                        adjudicator_id=written(self._index.annotators[row.adjudicator]),
                        at=parse_moment(row.at),
                    )
                )
            Adjudication.objects.bulk_create(made)

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the decisions."""
        for one, conversations in round_batches(scope):
            rows = _adjudications(
                Adjudication.objects.filter(round=one, reply__conversation__in=conversations)
            )
            yield from sorted(rows, key=lambda row: tuple(row[part] for part in self.key))


def _fingerprint(row: LabelEventRow | LabelRow, comment: str, at: str) -> int:
    quotes = canonical_json([quote.model_dump() for quote in row.quotes])
    return hash((row.value, row.reason, comment, quotes, at))


def _break(index: AnnotationIndex, raw: dict[str, Any]) -> None:
    key = (raw["conversation"], raw["respondent"], raw["sample"], raw["occurrence"])
    known = index.assignment(raw["round"], key, raw["annotator"])
    if known is not None:
        known.broken = True


_PATH = (
    "assignment__round_item__round__name",
    "assignment__round_item__reply__conversation__key",
    "assignment__round_item__reply__respondent__slug",
    "assignment__round_item__reply__sample",
    "assignment__round_item__occurrence",
    "assignment__annotator__pseudonym",
    "criterion__key",
    "value",
    "reason",
    "quotes",
)
_PATH_NAMES = (*ASSIGNMENT_KEY, "criterion", "value", "reason", "quotes")


def _events(found: "QuerySet[LabelEvent]") -> list[dict[str, Any]]:
    rows = []
    orders: dict[int, int] = {}
    for assignment, client, seq, digest, at, comment, redacted, *values in found.order_by(
        "id"
    ).values_list(
        "assignment_id",
        "client",
        "seq",
        "comment_digest",
        "at",
        "text__comment",
        "text__redacted_at",
        *_PATH,
    ):
        orders[assignment] = orders.get(assignment, 0) + 1
        rows.append(
            dict(
                zip(_PATH_NAMES, values, strict=True),
                order=orders[assignment],
                client=client,
                seq=seq,
                comment=None if redacted and digest else comment or "",
                comment_digest=digest,
                at=moment_text(at),
            )
        )
    return rows


def _labels(found: "QuerySet[Label]") -> list[dict[str, Any]]:
    return [
        dict(
            zip(_PATH_NAMES, values, strict=True),
            comment=comment,
            updated_at=moment_text(updated_at),
        )
        for comment, updated_at, *values in found.order_by().values_list(
            "comment", "updated_at", *_PATH
        )
    ]


def _adjudications(found: "QuerySet[Adjudication]") -> list[dict[str, Any]]:
    rows = []
    orders: dict[Key, int] = {}
    for values in found.order_by("id").values_list(
        "round__name",
        "reply__conversation__key",
        "reply__respondent__slug",
        "reply__sample",
        "criterion__key",
        "value",
        "reason",
        "confidence",
        "criterion_at_fault",
        "adjudicator__pseudonym",
        "at",
    ):
        unit = values[:5]
        orders[unit] = orders.get(unit, 0) + 1
        rows.append(
            {
                "round": values[0],
                "conversation": values[1],
                "respondent": values[2],
                "sample": values[3],
                "criterion": values[4],
                "order": orders[unit],
                "value": values[5],
                "reason": values[6],
                "confidence": values[7],
                "criterion_at_fault": values[8],
                "adjudicator": values[9],
                "at": moment_text(values[10]),
            }
        )
    return rows

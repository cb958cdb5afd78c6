"""Annotators and rounds, into and out of a bundle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import Q

from annotation.models import Annotator, Round, RoundCriterion, RoundItem, RoundMember, Slot
from annotation.schema import AnnotatorRow, ItemRow, RoundRow
from annotation.transfer.index import AnnotationIndex, KnownItem, KnownRound
from corpus.schema.fields import moment_text, parse_moment, parse_moment_or_none
from corpus.transfer.collections import collection_slugs
from corpus.transfer.index import KnownCollection
from corpus.transfer.table import Key, Problem, Scope, Table, in_chunks, written


def rounds_in(scope: Scope) -> list[Round]:
    """Return the rounds in scope, sorted by name."""
    found = Round.objects.filter(collection__slug__in=collection_slugs(scope)).order_by()
    return sorted(found.select_related("collection"), key=lambda one: one.name)


class AnnotatorTable(Table[AnnotatorRow]):
    """The people behind labels."""

    name: ClassVar[str] = "annotators"
    key: ClassVar[tuple[str, ...]] = ("pseudonym",)
    row = AnnotatorRow

    def __init__(self, index: AnnotationIndex) -> None:
        self._index = index

    def stored(self, rows: Sequence[AnnotatorRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored annotators."""
        known = self._index.annotators
        return {
            (row.pseudonym,): {"pseudonym": row.pseudonym}
            for row in rows
            if known.get(row.pseudonym) is not None
        }

    def admit(self, row: AnnotatorRow, line: int) -> None:
        """Remember an annotator."""
        self._index.annotators.setdefault(row.pseudonym, None)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused annotator."""
        self._index.annotators.setdefault(raw["pseudonym"], None)

    def write(self, rows: Callable[[], Iterator[list[AnnotatorRow]]]) -> None:
        """Insert annotators; an account is never made or linked."""
        for chunk in rows():
            made = Annotator.objects.bulk_create(Annotator(pseudonym=r.pseudonym) for r in chunk)
            for one in made:
                self._index.annotators[one.pseudonym] = one.pk

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the annotators, those with a part in a round in scope."""
        found = Annotator.objects.order_by()
        if scope.collections is not None:
            part = {
                f"{path}__collection__slug__in": scope.collections
                for path in (
                    "memberships__round",
                    "assignments__round_item__round",
                    "reserved_items__round",
                    "adjudications__round",
                )
            }
            chosen = Q()
            for path, slugs in part.items():
                chosen |= Q(
                    pk__in=Annotator.objects.order_by().filter(**{path: slugs}).values("pk")
                )
            found = found.filter(chosen)
        for pseudonym in sorted(found.values_list("pseudonym", flat=True)):
            yield {"pseudonym": pseudonym}


class RoundTable(Table[RoundRow]):
    """Labelling campaigns with members, items, slots and what is asked."""

    name: ClassVar[str] = "rounds"
    key: ClassVar[tuple[str, ...]] = ("name",)
    row = RoundRow

    def __init__(self, index: AnnotationIndex) -> None:
        self._index = index

    def stored(self, rows: Sequence[RoundRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored rounds."""
        found = Round.objects.filter(name__in=[row.name for row in rows])
        return {(one.name,): _round(one) for one in found.select_related("collection")}

    def problems(self, row: RoundRow, line: int) -> Iterator[Problem]:
        """Refuse what the round refers to and nobody has."""
        collection = self._index.corpus.collection(row.collection)
        if collection is None:
            yield "collection", row.collection, "there is no such collection"
            return
        for number, member in enumerate(row.members):
            if member.annotator not in self._index.annotators:
                yield f"members[{number}].annotator", member.annotator, "there is no such annotator"
        for number, item in enumerate(row.items):
            for field, value, reason in self._item_problems(collection, item):
                yield f"items[{number}].{field}", value, reason

    def _item_problems(self, collection: KnownCollection, item: ItemRow) -> Iterator[Problem]:
        if item.reserved_for is not None and item.reserved_for not in self._index.annotators:
            yield "reserved_for", item.reserved_for, "there is no such annotator"
        known = collection.conversations.get(item.conversation)
        if known is None:
            yield "conversation", item.conversation, "the collection has no such conversation"
            return
        if (item.respondent, item.sample) not in known.replies:
            yield "respondent", item.respondent, "the respondent has no such reply"
        rubric = known.rubrics.get(item.rubric_version)
        if rubric is None:
            yield "rubric_version", item.rubric_version, "the conversation has no such rubric"
        elif rubric.status == "draft":
            reason = "that rubric is a draft here; a round asks by a published one"
            yield "rubric_version", item.rubric_version, reason
        elif rubric.status != "unknown":
            for number, asked in enumerate(item.criteria):
                if asked.criterion not in rubric.criteria:
                    field = f"criteria[{number}].criterion"
                    yield field, asked.criterion, "the rubric has no such criterion"

    def admit(self, row: RoundRow, line: int) -> None:
        """Remember a round and its items."""
        known = KnownRound(None, row.collection)
        shared: dict[frozenset[str], frozenset[str]] = {}
        for item in row.items:
            asked = frozenset(one.criterion for one in item.criteria)
            known.items[item.key] = KnownItem(
                None,
                shared.setdefault(asked, asked),
                item.reserved_for,
                dict.fromkeys(item.slots),
            )
        self._index.add_round(row.name, known)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused round."""
        self._index.add_round(raw["name"], KnownRound(None, raw["collection"], broken=True))

    def write(self, rows: Callable[[], Iterator[list[RoundRow]]]) -> None:
        """Insert rounds with all that they hold."""
        for chunk in rows():
            for row in chunk:
                self._write_round(row)

    def _write_round(self, row: RoundRow) -> None:
        collection = self._index.corpus.collection(row.collection)
        known = self._index.round(row.name)
        assert collection is not None
        assert known is not None
        known.pk = Round.objects.create(
            collection_id=written(collection.pk),
            name=row.name,
            purpose=row.purpose,
            guidelines=row.guidelines,
            overlap=row.overlap,
            status=row.status,
            seed=row.seed,
            plan=row.plan,
            created_at=parse_moment(row.created_at),
            opened_at=parse_moment_or_none(row.opened_at),
            closed_at=parse_moment_or_none(row.closed_at),
        ).pk
        annotators = self._index.annotators
        RoundMember.objects.bulk_create(
            RoundMember(
                round_id=known.pk,
                annotator_id=written(annotators[one.annotator]),
                active=one.active,
            )
            for one in row.members
        )
        for items in in_chunks(row.items):
            self._write_items(collection, known, items)

    def _write_items(
        self, collection: KnownCollection, known: KnownRound, items: list[ItemRow]
    ) -> None:
        annotators = self._index.annotators
        made = RoundItem.objects.bulk_create(
            RoundItem(
                round_id=written(known.pk),
                reply_id=collection.conversations[item.conversation].replies[
                    item.respondent, item.sample
                ],
                rubric_id=written(
                    collection.conversations[item.conversation].rubrics[item.rubric_version].pk
                ),
                kind=item.kind,
                occurrence=item.occurrence,
                reserved_for_id=annotators[item.reserved_for] if item.reserved_for else None,
                position=item.position,
            )
            for item in items
        )
        RoundCriterion.objects.bulk_create(
            RoundCriterion(
                round_item=one,
                criterion_id=written(
                    collection.conversations[item.conversation].criteria[asked.criterion]
                ),
                inclusion_probability=asked.inclusion_probability,
            )
            for item, one in zip(items, made, strict=True)
            for asked in item.criteria
        )
        slots = Slot.objects.bulk_create(
            Slot(round_item=one, number=number)
            for item, one in zip(items, made, strict=True)
            for number in item.slots
        )
        by_item = {one.pk: known.items[item.key] for item, one in zip(items, made, strict=True)}
        for pk, known_item in by_item.items():
            known_item.pk = pk
        for slot in slots:
            by_item[slot.round_item_id].slots[slot.number] = slot.pk

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the rounds."""
        for one in rounds_in(scope):
            yield _round(one)


def _round(one: Round) -> dict[str, Any]:
    members = one.members.order_by().values_list("annotator__pseudonym", "active")
    items: dict[int, dict[str, Any]] = {}
    for pk, *values in one.items.order_by().values_list(
        "pk",
        "reply__conversation__key",
        "reply__respondent__slug",
        "reply__sample",
        "occurrence",
        "kind",
        "reserved_for__pseudonym",
        "rubric__version",
        "position",
    ):
        items[pk] = dict(zip(_ITEM_FIELDS, values, strict=True), slots=[], criteria=[])
    for item, number in (
        Slot.objects.filter(round_item__round=one)
        .order_by("number")
        .values_list("round_item_id", "number")
    ):
        items[item]["slots"].append(number)
    for item, criterion, probability in (
        RoundCriterion.objects.filter(round_item__round=one)
        .order_by("id")
        .values_list("round_item_id", "criterion__key", "inclusion_probability")
    ):
        items[item]["criteria"].append(
            {"criterion": criterion, "inclusion_probability": probability}
        )
    return {
        "name": one.name,
        "collection": one.collection.slug,
        "purpose": one.purpose,
        "guidelines": one.guidelines,
        "overlap": one.overlap,
        "status": one.status,
        "seed": one.seed,
        "plan": one.plan,
        "created_at": moment_text(one.created_at),
        "opened_at": moment_text(one.opened_at),
        "closed_at": moment_text(one.closed_at),
        "members": [{"annotator": name, "active": active} for name, active in sorted(members)],
        "items": sorted(
            items.values(),
            key=lambda item: (item["position"], *(item[name] for name in _ITEM_FIELDS[:4])),
        ),
    }


_ITEM_FIELDS = (
    "conversation",
    "respondent",
    "sample",
    "occurrence",
    "kind",
    "reserved_for",
    "rubric_version",
    "position",
)

"""Rubrics, into and out of a bundle; a changed one becomes a draft."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from corpus.models import Rubric, RubricItem
from corpus.schema import canonical_json
from corpus.schema.fields import moment_text, parse_moment
from corpus.schema.rows import RubricRow
from corpus.transfer.conversations import conversation_batches
from corpus.transfer.index import CorpusIndex, KnownRubric
from corpus.transfer.table import Key, Problem, Scope, Table, differences, written

# The order in which they fit the rule of one published and one draft for each conversation.
_ORDER = ("retired", "published", "draft")
# Where a rubric stands in its life is each installation's own decision.
_LOCAL = {"status", "published_at"}


class RubricTable(Table[RubricRow]):
    """The versions of the rubrics."""

    name: ClassVar[str] = "rubrics"
    key: ClassVar[tuple[str, ...]] = ("collection", "conversation", "version")
    row = RubricRow

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index
        # Of stored conversations of the chunk at hand: the items of each version.
        self._items: dict[tuple[str, str], set[str]] = {}
        self._drafted: set[tuple[str, str]] = set()

    @property
    def drafts(self) -> int:
        """Return how many changed rubrics become drafts."""
        return len(self._drafted)

    def stored(self, rows: Sequence[RubricRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored versions, and as equal what stands there under another number."""
        pks = self._index.conversation_pks({(row.collection, row.conversation) for row in rows})
        self._items = {key: set() for key in pks.values()}
        found: dict[Key, dict[str, Any]] = {}
        for one in _with_items(list(pks)):
            collection, conversation = pks[one.conversation_id]
            row = _rubric(collection, conversation, one)
            found[collection, conversation, one.version] = row
            self._items[collection, conversation].add(canonical_json(row["items"]))
        for row_model in rows:
            key = self.key_of(row_model)
            if key not in found and self._stands(row_model):
                found[key] = row_model.model_dump()
        return found

    def is_new(self, row: RubricRow, stored: dict[str, Any]) -> bool:
        """Tell whether the row has other items than any stored version: then it is a draft."""
        return not self._stands(row)

    def _stands(self, row: RubricRow) -> bool:
        items = canonical_json([item.model_dump() for item in row.items])
        return items in self._items.get((row.collection, row.conversation), ())

    def settle(self, row: RubricRow, stored: dict[str, Any]) -> Iterator[Problem]:
        """Refuse another author or note under the items that are stored."""
        dumped = row.model_dump()
        if canonical_json(dumped["items"]) == canonical_json(stored["items"]):
            yield from (one for one in differences(dumped, stored) if one[0] not in _LOCAL)

    def problems(self, row: RubricRow, line: int) -> Iterator[Problem]:
        """Refuse unknown criteria and dimensions, and a second draft or published rubric."""
        collection = self._index.collection(row.collection)
        known = self._index.conversation(row.collection, row.conversation)
        if collection is None or known is None:
            yield "conversation", row.conversation, "the collection has no such conversation"
            return
        for number, item in enumerate(row.items):
            if item.criterion not in known.criteria:
                field = f"items[{number}].criterion"
                yield field, item.criterion, "the conversation has no such criterion"
            if item.dimension not in collection.dimensions:
                field = f"items[{number}].dimension"
                yield field, item.dimension, "the collection has no such dimension"
        status = "draft" if known.is_stored else row.status
        if status != "retired" and (
            (row.collection, row.conversation) in self._drafted
            or any(rubric.status == status for rubric in known.rubrics.values())
        ):
            word = "another draft" if status == "draft" else "another published rubric"
            yield "status", row.status, f"the conversation has {word} already"

    def admit(self, row: RubricRow, line: int) -> None:
        """Remember a version, for the rounds that ask by it."""
        known = self._index.conversation(row.collection, row.conversation)
        if known is None:
            return
        status = row.status
        if known.is_stored:
            status = "draft"
            self._drafted.add((row.collection, row.conversation))
        criteria = frozenset(item.criterion for item in row.items)
        known.rubrics.setdefault(row.version, KnownRubric(None, status, criteria))

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused version; nothing is refused for what it asks."""
        known = self._index.conversation(raw["collection"], raw["conversation"])
        if known is not None:
            known.rubrics.setdefault(raw["version"], KnownRubric(None, "unknown", frozenset()))

    def write(self, rows: Callable[[], Iterator[list[RubricRow]]]) -> None:
        """Insert each as a draft with its items, then publish and retire."""
        for status in _ORDER:
            for chunk in rows():
                chosen = [row for row in chunk if self._status(row) == status]
                while chosen:
                    wave = {(row.collection, row.conversation): row for row in reversed(chosen)}
                    self._write_wave(list(wave.values()), status)
                    chosen = [
                        row for row in chosen if wave[row.collection, row.conversation] is not row
                    ]

    def _status(self, row: RubricRow) -> str:
        drafted = (row.collection, row.conversation) in self._drafted
        return "draft" if drafted else row.status

    def _write_wave(self, rows: list[RubricRow], status: str) -> None:
        made = Rubric.objects.bulk_create(self._made(row) for row in rows)
        items = []
        for row, rubric in zip(rows, made, strict=True):
            collection = self._index.collection(row.collection)
            known = self._index.conversation(row.collection, row.conversation)
            assert collection is not None
            assert known is not None
            criteria = frozenset(item.criterion for item in row.items)
            known.rubrics[rubric.version] = KnownRubric(rubric.pk, status, criteria)
            items += [
                RubricItem(
                    rubric=rubric,
                    criterion_id=written(known.criteria[item.criterion]),
                    dimension_id=written(collection.dimensions[item.dimension]),
                    weight=item.weight,
                    position=item.position,
                )
                for item in row.items
            ]
        RubricItem.objects.bulk_create(items)
        if status == "draft":
            return
        by_moment: dict[str, list[int]] = {}
        for row, rubric in zip(rows, made, strict=True):
            by_moment.setdefault(row.published_at or "", []).append(rubric.pk)
        for moment, pks in by_moment.items():
            Rubric.objects.filter(pk__in=pks).update(
                status="published", published_at=parse_moment(moment)
            )
        if status == "retired":
            Rubric.objects.filter(pk__in=[one.pk for one in made]).update(status="retired")

    def _made(self, row: RubricRow) -> Rubric:
        known = self._index.conversation(row.collection, row.conversation)
        assert known is not None
        version = row.version
        stored = [number for number, one in known.rubrics.items() if one.pk is not None]
        if (row.collection, row.conversation) in self._drafted and version <= max(
            stored, default=0
        ):
            version = max(stored) + 1
        return Rubric(
            conversation_id=written(known.pk),
            version=version,
            author=row.author,
            change_note=row.change_note,
        )

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the rubrics."""
        for slug, batch in conversation_batches(scope):
            rows = [
                _rubric(slug, batch[one.conversation_id], one) for one in _with_items(list(batch))
            ]
            yield from sorted(rows, key=lambda row: (row["conversation"], row["version"]))


def _with_items(conversations: list[int]) -> Iterator[Rubric]:
    found = Rubric.objects.filter(conversation__in=conversations).order_by()
    yield from found.prefetch_related("items__criterion", "items__dimension")


def _rubric(collection: str, conversation: str, one: Rubric) -> dict[str, Any]:
    items = sorted(one.items.all(), key=lambda item: item.position)
    return {
        "collection": collection,
        "conversation": conversation,
        "version": one.version,
        "status": one.status,
        "published_at": moment_text(one.published_at),
        "author": one.author,
        "change_note": one.change_note,
        "items": [
            {
                "criterion": item.criterion.key,
                "dimension": item.dimension.slug,
                "weight": item.weight,
                "position": item.position,
            }
            for item in items
        ],
    }

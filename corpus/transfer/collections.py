"""Collections with their dimensions and subcategories, into and out of a bundle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from corpus.models import Collection, Dimension, Subcategory
from corpus.schema.rows import NOTICE_KEY, CollectionRow, DimensionRow, SubcategoryRow
from corpus.transfer.index import CorpusIndex
from corpus.transfer.table import Key, Problem, Scope, Table, written


def collection_slugs(scope: Scope) -> list[str]:
    """Return the collections in scope, sorted."""
    found = Collection.objects.order_by()
    if scope.collections is not None:
        found = found.filter(slug__in=scope.collections)
    return sorted(found.values_list("slug", flat=True))


def notices(scope: Scope) -> str | None:
    """Return what the manifest of the collections says beyond its numbers."""
    found = {
        source[NOTICE_KEY]
        for source in Collection.objects.filter(slug__in=collection_slugs(scope))
        .order_by()
        .values_list("source", flat=True)
        if NOTICE_KEY in source
    }
    return "\n".join(sorted(found)) or None


class CollectionTable(Table[CollectionRow]):
    """The sets of conversations."""

    name: ClassVar[str] = "collections"
    key: ClassVar[tuple[str, ...]] = ("slug",)
    row = CollectionRow

    def __init__(self, index: CorpusIndex, notice: str | None = None) -> None:
        self._index = index
        self._notice = notice

    def stored(self, rows: Sequence[CollectionRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored collections."""
        found = Collection.objects.filter(slug__in=[row.slug for row in rows])
        return {(one.slug,): _collection(one) for one in found}

    def admit(self, row: CollectionRow, line: int) -> None:
        """Remember a collection."""
        self._index.add_collection(row.slug)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused collection."""
        self._index.add_collection(raw["slug"])

    def write(self, rows: Callable[[], Iterator[list[CollectionRow]]]) -> None:
        """Insert collections; each keeps the notice of its bundle."""
        extra = {NOTICE_KEY: self._notice} if self._notice else {}
        for chunk in rows():
            made = Collection.objects.bulk_create(
                Collection(**row.model_dump(exclude={"source"}), source={**row.source, **extra})
                for row in chunk
            )
            for one in made:
                known = self._index.collection(one.slug)
                assert known is not None
                known.pk = one.pk

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the collections."""
        for slug in collection_slugs(scope):
            yield _collection(Collection.objects.get(slug=slug))


class _OfCollection(Table[DimensionRow]):
    """What dimensions and subcategories share."""

    key: ClassVar[tuple[str, ...]] = ("collection", "slug")
    model: ClassVar[type[Dimension] | type[Subcategory]]

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index

    def _known(self, collection: str) -> dict[str, int | None] | None:
        known = self._index.collection(collection)
        return getattr(known, self.name) if known else None

    def stored(self, rows: Sequence[DimensionRow]) -> Mapping[Key, dict[str, Any]]:
        """Return those that the collections have."""
        found = self.model._default_manager.filter(
            collection__slug__in={row.collection for row in rows},
            slug__in={row.slug for row in rows},
        ).select_related("collection")
        return {(one.collection.slug, one.slug): self._row_of(one) for one in found}

    def problems(self, row: DimensionRow, line: int) -> Iterator[Problem]:
        """Refuse one of an unknown collection."""
        if self._known(row.collection) is None:
            yield "collection", row.collection, "there is no such collection"

    def admit(self, row: DimensionRow, line: int) -> None:
        """Remember one."""
        known = self._known(row.collection)
        if known is not None:
            known.setdefault(row.slug, None)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused one."""
        known = self._known(raw["collection"])
        if known is not None:
            known.setdefault(raw["slug"], None)

    def write(self, rows: Callable[[], Iterator[list[DimensionRow]]]) -> None:
        """Insert them."""
        for chunk in rows():
            manager: Any = self.model._default_manager
            made = manager.bulk_create(
                self.model(
                    collection_id=self._collection_pk(row.collection),
                    **row.model_dump(exclude={"collection"}),
                )
                for row in chunk
            )
            for row, one in zip(chunk, made, strict=True):
                known = self._known(row.collection)
                assert known is not None
                known[row.slug] = one.pk

    def _collection_pk(self, slug: str) -> int:
        known = self._index.collection(slug)
        assert known is not None
        return written(known.pk)

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield them by collection."""
        for slug in collection_slugs(scope):
            found = self.model._default_manager.filter(collection__slug=slug)
            for one in sorted(found.select_related("collection"), key=lambda one: one.slug):
                yield self._row_of(one)

    def _row_of(self, one: Any) -> dict[str, Any]:
        return {
            "collection": one.collection.slug,
            **{name: getattr(one, name) for name in self.row.model_fields if name != "collection"},
        }


class DimensionTable(_OfCollection):
    """The dimensions of the collections."""

    name: ClassVar[str] = "dimensions"
    row = DimensionRow
    model: ClassVar[type[Dimension] | type[Subcategory]] = Dimension


class SubcategoryTable(_OfCollection):
    """The subcategories of the collections."""

    name: ClassVar[str] = "subcategories"
    row = SubcategoryRow  # type: ignore[assignment]
    model: ClassVar[type[Dimension] | type[Subcategory]] = Subcategory


def _collection(one: Collection) -> dict[str, Any]:
    return {
        "slug": one.slug,
        "name": one.name,
        "description": one.description,
        "source": {name: value for name, value in one.source.items() if name != NOTICE_KEY},
    }

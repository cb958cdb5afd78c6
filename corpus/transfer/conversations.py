"""Conversations and their criteria, into and out of a bundle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from corpus.models import Conversation, Criterion
from corpus.schema import digest, places
from corpus.schema.rows import ConversationRow, CriterionRow
from corpus.transfer.collections import collection_slugs
from corpus.transfer.index import CorpusIndex, KnownConversation
from corpus.transfer.table import Key, LateProblem, Problem, Scope, Table, in_chunks, written

# Conversations whose rows are read at once: all their replies by all models are held in memory.
BATCH = 20


def conversation_batches(scope: Scope) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield collections with some of their conversations' keys by primary key, sorted."""
    for slug in collection_slugs(scope):
        keys = Conversation.objects.filter(collection__slug=slug).order_by()
        for batch in in_chunks(
            sorted((key, pk) for pk, key in keys.values_list("pk", "key")), BATCH
        ):
            yield slug, {pk: key for key, pk in batch}


class ConversationTable(Table[ConversationRow]):
    """What respondents answer."""

    name: ClassVar[str] = "conversations"
    key: ClassVar[tuple[str, ...]] = ("collection", "key")
    row = ConversationRow

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index
        self._supersedes: dict[tuple[str, str], tuple[int, str]] = {}

    def stored(self, rows: Sequence[ConversationRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored conversations."""
        pks = self._index.conversation_pks({(row.collection, row.key) for row in rows})
        found = Conversation.objects.filter(pk__in=pks).select_related("subcategory", "supersedes")
        return {pks[one.pk]: _conversation(pks[one.pk][0], one) for one in found}

    def problems(self, row: ConversationRow, line: int) -> Iterator[Problem]:
        """Refuse one of an unknown collection or subcategory."""
        known = self._index.collection(row.collection)
        if known is None:
            yield "collection", row.collection, "there is no such collection"
        elif row.subcategory is not None and row.subcategory not in known.subcategories:
            yield "subcategory", row.subcategory, "the collection has no such subcategory"

    def admit(self, row: ConversationRow, line: int) -> None:
        """Remember a conversation and which one it supersedes."""
        turns = [{"role": turn.role, "text": turn.text} for turn in row.turns]
        self._add(row.collection, row.key, len(places(turns)))
        if row.supersedes is not None:
            self._supersedes[row.collection, row.key] = (line, row.supersedes)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused conversation."""
        self._add(raw["collection"], raw["key"], None)

    def _add(self, collection: str, key: str, count: int | None) -> None:
        known = self._index.collection(collection)
        if known is not None:
            known.conversations.setdefault(key, KnownConversation(None, count))

    def finish(self) -> Iterator[LateProblem]:
        """Refuse a successor of nothing, a second successor, and a circle."""
        for (collection, key), (line, target) in self._supersedes.items():
            known = self._index.conversation(collection, target)
            if known is None:
                yield line, "supersedes", target, "the collection has no such conversation"
            elif known.superseded:
                yield (
                    line,
                    "supersedes",
                    target,
                    "the conversation is superseded by another already",
                )
            else:
                known.superseded = True
                if _in_circle((collection, key), self._supersedes):
                    yield line, "supersedes", target, "the conversations supersede in a circle"

    def write(self, rows: Callable[[], Iterator[list[ConversationRow]]]) -> None:
        """Insert conversations, those that are superseded before their successors."""
        waiting = True
        while waiting:
            waiting = False
            for chunk in rows():
                ready = []
                for row in chunk:
                    known = self._index.conversation(row.collection, row.key)
                    if known is None or known.pk is not None:
                        continue
                    if row.supersedes is not None and self._pk(row, row.supersedes) is None:
                        waiting = True
                        continue
                    ready.append((known, self._made(row)))
                Conversation.objects.bulk_create([one for _, one in ready])
                for known, one in ready:
                    known.pk = one.pk

    def _pk(self, row: ConversationRow, key: str) -> int | None:
        known = self._index.conversation(row.collection, key)
        return known.pk if known else None

    def _made(self, row: ConversationRow) -> Conversation:
        collection = self._index.collection(row.collection)
        assert collection is not None
        turns = [{"role": turn.role, "text": turn.text} for turn in row.turns]
        return Conversation(
            collection_id=written(collection.pk),
            key=row.key,
            subcategory_id=collection.subcategories[row.subcategory] if row.subcategory else None,
            locale=row.locale,
            turns=turns,
            content_digest=digest(turns),
            multi_turn=sum(turn.role == "user" for turn in row.turns) > 1,
            status=row.status,
            authors=row.authors,
            source=row.source,
            supersedes_id=self._pk(row, row.supersedes) if row.supersedes else None,
        )

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the conversations."""
        for slug, batch in conversation_batches(scope):
            found = Conversation.objects.select_related("subcategory", "supersedes").in_bulk(batch)
            for pk in batch:
                yield _conversation(slug, found[pk])


class CriterionTable(Table[CriterionRow]):
    """What is asked about replies."""

    name: ClassVar[str] = "criteria"
    key: ClassVar[tuple[str, ...]] = ("collection", "conversation", "key")
    row = CriterionRow

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index
        self._restates: dict[tuple[str, str, str], tuple[int, str]] = {}

    def stored(self, rows: Sequence[CriterionRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored criteria."""
        pks = self._index.conversation_pks({(row.collection, row.conversation) for row in rows})
        found = Criterion.objects.filter(
            conversation__in=pks, key__in={row.key for row in rows}
        ).select_related("same_meaning_as")
        return {
            (*pks[one.conversation_id], one.key): _criterion(*pks[one.conversation_id], one)
            for one in found
        }

    def problems(self, row: CriterionRow, line: int) -> Iterator[Problem]:
        """Refuse one of an unknown conversation."""
        if self._index.conversation(row.collection, row.conversation) is None:
            yield "conversation", row.conversation, "the collection has no such conversation"

    def admit(self, row: CriterionRow, line: int) -> None:
        """Remember a criterion and which one it restates."""
        self._add(row.collection, row.conversation, row.key)
        if row.same_meaning_as is not None:
            key = (row.collection, row.conversation, row.key)
            self._restates[key] = (line, row.same_meaning_as)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused criterion."""
        self._add(raw["collection"], raw["conversation"], raw["key"])

    def _add(self, collection: str, conversation: str, key: str) -> None:
        known = self._index.conversation(collection, conversation)
        if known is not None:
            known.criteria.setdefault(key, None)

    def finish(self) -> Iterator[LateProblem]:
        """Refuse a restatement of nothing, and a circle."""
        for key, (line, target) in self._restates.items():
            known = self._index.conversation(*key[:2])
            if known is not None and target not in known.criteria:
                yield line, "same_meaning_as", target, "the conversation has no such criterion"
            elif _in_circle(key, self._restates):
                yield line, "same_meaning_as", target, "the criteria restate in a circle"

    def write(self, rows: Callable[[], Iterator[list[CriterionRow]]]) -> None:
        """Insert criteria, those that are restated before their restatements."""
        waiting = True
        while waiting:
            waiting = False
            for chunk in rows():
                ready: list[tuple[KnownConversation, Criterion]] = []
                for row in chunk:
                    known = self._index.conversation(row.collection, row.conversation)
                    if known is None or known.criteria[row.key] is not None:
                        continue
                    restated = known.criteria[row.same_meaning_as] if row.same_meaning_as else None
                    if row.same_meaning_as and restated is None:
                        waiting = True
                        continue
                    one = Criterion(
                        conversation_id=written(known.pk),
                        key=row.key,
                        text=row.text,
                        same_meaning_as_id=restated,
                        reason=row.reason,
                        source=row.source,
                    )
                    ready.append((known, one))
                Criterion.objects.bulk_create([one for _, one in ready])
                for known, one in ready:
                    known.criteria[one.key] = one.pk

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the criteria."""
        for slug, batch in conversation_batches(scope):
            found = Criterion.objects.filter(conversation__in=batch).order_by()
            rows = [
                _criterion(slug, batch[one.conversation_id], one)
                for one in found.select_related("same_meaning_as")
            ]
            yield from sorted(rows, key=lambda row: (row["conversation"], row["key"]))


def _in_circle(start: Key, links: Mapping[Any, tuple[int, str]]) -> bool:
    at: Key = start
    for _ in range(len(links)):
        if at not in links:
            return False
        at = (*at[:-1], links[at][1])
        if at == start:
            return True
    return False


def _conversation(collection: str, one: Conversation) -> dict[str, Any]:
    return {
        "collection": collection,
        "key": one.key,
        "subcategory": one.subcategory.slug if one.subcategory else None,
        "locale": one.locale,
        "turns": one.turns,
        "status": one.status,
        "authors": one.authors,
        "source": one.source,
        "supersedes": one.supersedes.key if one.supersedes else None,
    }


def _criterion(collection: str, conversation: str, one: Criterion) -> dict[str, Any]:
    return {
        "collection": collection,
        "conversation": conversation,
        "key": one.key,
        "text": one.text,
        "same_meaning_as": one.same_meaning_as.key if one.same_meaning_as else None,
        "reason": one.reason,
        "source": one.source,
    }

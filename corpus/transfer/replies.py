"""Respondents and replies, into and out of a bundle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar

from corpus.models import Reply, Respondent
from corpus.schema import digest
from corpus.schema.fields import moment_text, parse_moment
from corpus.schema.rows import ReplyRow, RespondentRow
from corpus.transfer.conversations import conversation_batches
from corpus.transfer.index import CorpusIndex
from corpus.transfer.table import Key, Problem, Scope, Table, written


class RespondentTable(Table[RespondentRow]):
    """Who replies."""

    name: ClassVar[str] = "respondents"
    key: ClassVar[tuple[str, ...]] = ("slug",)
    row = RespondentRow

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index

    def stored(self, rows: Sequence[RespondentRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored respondents."""
        found = Respondent.objects.filter(slug__in=[row.slug for row in rows])
        return {(one.slug,): _respondent(one) for one in found}

    def admit(self, row: RespondentRow, line: int) -> None:
        """Remember a respondent."""
        self._index.respondents.setdefault(row.slug, None)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused respondent."""
        self._index.respondents.setdefault(raw["slug"], None)

    def write(self, rows: Callable[[], Iterator[list[RespondentRow]]]) -> None:
        """Insert respondents."""
        for chunk in rows():
            for one in Respondent.objects.bulk_create(
                Respondent(**row.model_dump()) for row in chunk
            ):
                self._index.respondents[one.slug] = one.pk

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the respondents, those with a reply in scope."""
        found = Respondent.objects.order_by()
        if scope.collections is not None:
            replies = Reply.objects.filter(conversation__collection__slug__in=scope.collections)
            found = found.filter(pk__in=replies.order_by().values("respondent"))
        for one in sorted(found, key=lambda one: one.slug):
            yield _respondent(one)


class ReplyTable(Table[ReplyRow]):
    """What respondents wrote."""

    name: ClassVar[str] = "replies"
    key: ClassVar[tuple[str, ...]] = ("collection", "conversation", "respondent", "sample")
    row = ReplyRow

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index

    def stored(self, rows: Sequence[ReplyRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored replies."""
        pks = self._index.conversation_pks({(row.collection, row.conversation) for row in rows})
        found = Reply.objects.filter(
            conversation__in=pks,
            respondent__slug__in={row.respondent for row in rows},
            sample__in={row.sample for row in rows},
        ).select_related("respondent")
        return {
            (*pks[one.conversation_id], one.respondent.slug, one.sample): _reply(
                *pks[one.conversation_id], one
            )
            for one in found.order_by()
        }

    def problems(self, row: ReplyRow, line: int) -> Iterator[Problem]:
        """Refuse one of unknown origin, or with another number of texts than places."""
        if row.respondent not in self._index.respondents:
            yield "respondent", row.respondent, "there is no such respondent"
        known = self._index.conversation(row.collection, row.conversation)
        if known is None:
            yield "conversation", row.conversation, "the collection has no such conversation"
        elif known.places is not None and known.places != len(row.turns):
            reason = f"the conversation has {known.places} places to answer, not {len(row.turns)}"
            yield "turns", row.turns, reason

    def admit(self, row: ReplyRow, line: int) -> None:
        """Remember a reply by its line, so that a quote can be compared with it."""
        known = self._index.conversation(row.collection, row.conversation)
        if known is not None:
            known.replies.setdefault((row.respondent, row.sample), -line)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused reply."""
        known = self._index.conversation(raw["collection"], raw["conversation"])
        if known is not None:
            known.replies.setdefault((raw["respondent"], raw["sample"]), 0)

    def write(self, rows: Callable[[], Iterator[list[ReplyRow]]]) -> None:
        """Insert replies."""
        for chunk in rows():
            made = Reply.objects.bulk_create(self._made(row) for row in chunk)
            for row, one in zip(chunk, made, strict=True):
                known = self._index.conversation(row.collection, row.conversation)
                assert known is not None
                known.replies[row.respondent, row.sample] = one.pk

    def _made(self, row: ReplyRow) -> Reply:
        known = self._index.conversation(row.collection, row.conversation)
        assert known is not None
        return Reply(
            conversation_id=written(known.pk),
            respondent_id=written(self._index.respondents[row.respondent]),
            sample=row.sample,
            turns=row.turns,
            digest=digest(row.turns),
            outcome=row.outcome,
            finish_reason=row.finish_reason,
            returned_model=row.returned_model,
            authors=row.authors,
            source=row.source,
            replied_on=date.fromisoformat(row.replied_on) if row.replied_on else None,
            created_at=parse_moment(row.created_at),
        )

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the replies."""
        for slug, batch in conversation_batches(scope):
            found = Reply.objects.filter(conversation__in=batch).order_by()
            rows = [
                _reply(slug, batch[one.conversation_id], one)
                for one in found.select_related("respondent")
            ]
            yield from sorted(
                rows, key=lambda row: (row["conversation"], row["respondent"], row["sample"])
            )


def _respondent(one: Respondent) -> dict[str, Any]:
    return {name: getattr(one, name) for name in RespondentRow.model_fields}


def _reply(collection: str, conversation: str, one: Reply) -> dict[str, Any]:
    return {
        "collection": collection,
        "conversation": conversation,
        "respondent": one.respondent.slug,
        "sample": one.sample,
        "turns": one.turns,
        "outcome": one.outcome,
        "finish_reason": one.finish_reason,
        "returned_model": one.returned_model,
        "authors": one.authors,
        "source": one.source,
        "replied_on": one.replied_on.isoformat() if one.replied_on else None,
        "created_at": moment_text(one.created_at),
    }

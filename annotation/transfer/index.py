"""Rounds, items and assignments by natural key: those stored, and those of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from annotation.models import Annotator, Assignment, Round, RoundCriterion, RoundItem, Slot
from annotation.schema import QuoteRow, Replay
from corpus.transfer.index import CorpusIndex
from corpus.transfer.table import Problem

ItemKey = tuple[str, str, int, int]


@dataclass(slots=True)
class KnownAssignment:
    """One annotator's work; broken where one of its rows was refused."""

    pk: int | None
    stored: bool
    events: int = 0
    complete: int = 0
    broken: bool = False
    sent: set[tuple[str, int]] = field(default_factory=set)
    replay: Replay[int] = field(default_factory=Replay)


@dataclass(slots=True)
class KnownItem:
    """One reply in a round; asked is None where that was refused."""

    pk: int | None
    asked: frozenset[str] | None
    reserved_for: str | None
    slots: dict[int, int | None]
    held: set[int] = field(default_factory=set)
    assignments: dict[str, KnownAssignment] = field(default_factory=dict)


@dataclass(slots=True)
class KnownRound:
    """A round; broken where its row was refused, so that its items are not known."""

    pk: int | None
    collection: str
    broken: bool = False
    items: dict[ItemKey, KnownItem] = field(default_factory=dict)
    _asked: dict[tuple[str, str, int], set[str]] | None = None

    def asked_of(self, reply: tuple[str, str, int]) -> set[str]:
        """Return what the items of a reply ask together."""
        if self._asked is None:
            self._asked = {}
            for key, item in self.items.items():
                self._asked.setdefault(key[:3], set()).update(item.asked or ())
        return self._asked.get(reply, set())


class AnnotationIndex:
    """What labels refer to by natural key; a round is loaded when it is first asked for."""

    def __init__(self, corpus: CorpusIndex) -> None:
        self.corpus = corpus
        self.annotators: dict[str, int | None] = dict(
            Annotator.objects.order_by().values_list("pseudonym", "pk")
        )
        self.has_events = False
        self._rounds: dict[str, KnownRound | None] = {}

    def round(self, name: str) -> KnownRound | None:
        """Return a round, or None where neither database nor file has it."""
        if name not in self._rounds:
            self._rounds[name] = _load(name)
        return self._rounds[name]

    def add_round(self, name: str, known: KnownRound) -> None:
        """Remember a round of the file."""
        if self.round(name) is None:
            self._rounds[name] = known

    def item(self, round_name: str, key: ItemKey) -> KnownItem | None:
        """Return an item of a round, or None."""
        known = self.round(round_name)
        return known.items.get(key) if known else None

    def assignment(self, round_name: str, key: ItemKey, annotator: str) -> KnownAssignment | None:
        """Return an assignment, or None."""
        item = self.item(round_name, key)
        return item.assignments.get(annotator) if item else None

    def new_assignments(self) -> Iterator[tuple[tuple[str | int, ...], KnownAssignment]]:
        """Yield the assignments of the file with their keys."""
        for name, known in self._rounds.items():
            for key, item in (known.items if known else {}).items():
                for annotator, assignment in item.assignments.items():
                    if not assignment.stored:
                        yield (name, *key, annotator), assignment

    def is_broken(self, round_name: str) -> bool:
        """Tell whether a round was refused, so that nothing can be said about its items."""
        known = self.round(round_name)
        return known is not None and known.broken

    def wrong_quotes(self, round_name: str, key: ItemKey, quotes: list[QuoteRow]) -> list[Problem]:
        """Return the quotes that the reply does not hold where they say."""
        if not quotes:
            return []
        known = self.round(round_name)
        assert known is not None
        conversation = self.corpus.conversation(known.collection, key[0])
        reference = conversation.replies.get((key[1], key[2]), 0) if conversation else 0
        if not reference:
            return []
        turns = self.corpus.reply_turns(reference)
        found: list[Problem] = []
        for number, quote in enumerate(quotes):
            if quote.turn >= len(turns):
                reason = f"the reply has {len(turns)} texts"
                found.append((f"quotes[{number}].turn", quote.turn, reason))
            elif not turns[quote.turn].startswith(quote.text, quote.start):
                reason = f"the reply does not say this at character {quote.start}"
                found.append((f"quotes[{number}].text", quote.text, reason))
        return found


def _load(name: str) -> KnownRound | None:
    stored = Round.objects.filter(name=name).values_list("pk", "collection__slug").first()
    if stored is None:
        return None
    known = KnownRound(stored[0], stored[1])
    asked: dict[int, set[str]] = {}
    for item, criterion in (
        RoundCriterion.objects.filter(round_item__round=known.pk)
        .order_by()
        .values_list("round_item_id", "criterion__key")
        .iterator()
    ):
        asked.setdefault(item, set()).add(criterion)
    # Many items ask the same criteria: one set serves them all.
    shared: dict[frozenset[str], frozenset[str]] = {}
    by_pk: dict[int, KnownItem] = {}
    for pk, reserved_for, conversation, respondent, sample, occurrence in (
        RoundItem.objects.filter(round=known.pk)
        .order_by()
        .values_list(
            "pk",
            "reserved_for__pseudonym",
            "reply__conversation__key",
            "reply__respondent__slug",
            "reply__sample",
            "occurrence",
        )
        .iterator()
    ):
        criteria = frozenset(asked.get(pk, ()))
        by_pk[pk] = KnownItem(pk, shared.setdefault(criteria, criteria), reserved_for, {})
        known.items[conversation, respondent, sample, occurrence] = by_pk[pk]
    numbers: dict[int, int] = {}
    for pk, item, number in (
        Slot.objects.filter(round_item__round=known.pk)
        .order_by()
        .values_list("pk", "round_item_id", "number")
        .iterator()
    ):
        by_pk[item].slots[number] = pk
        numbers[pk] = number
    for pk, item, annotator, slot in (
        Assignment.objects.filter(round_item__round=known.pk)
        .order_by()
        .values_list("pk", "round_item_id", "annotator__pseudonym", "slot_id")
        .iterator()
    ):
        by_pk[item].assignments[annotator] = KnownAssignment(pk, stored=True)
        if slot is not None:
            by_pk[item].held.add(numbers[slot])
    return known

"""Random histories of a round, beside a slow model that says what must come of each act."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from annotation import services
from annotation.allocation import own_order
from annotation.models import Assignment, Label, LabelEvent, RoundItem, Slot
from annotation.selectors import replay_labels, rounds_for, verify_assignments
from tests.factories import make_annotator, make_collection, make_conversation, make_reply, number

ITEMS, PEOPLE, CRITERIA = 2, 3, 2
UNTOUCHED, STARTED = timedelta(minutes=60), timedelta(hours=72)
START = datetime(2026, 5, 4, 9, tzinfo=UTC)

people = st.integers(0, PEOPLE - 1)
places = st.integers(0, ITEMS - 1)
answers = st.sampled_from(
    [
        ("met", "", ""),
        ("not_met", "", "Misses the point."),
        ("cannot_tell", "reply_ambiguous", ""),
        ("cannot_tell", "", ""),
        (None, "", "Only a thought."),
    ]
)


@dataclass
class Work:
    """What the model knows of one annotator's work on one item."""

    state: str = "active"
    lease: datetime | None = None
    started: bool = False
    skips: int = 0
    turn: int = 0
    events: list = field(default_factory=list)

    def labels(self):
        """Return the answers by criterion, by going through all events for each of them."""
        found = {}
        for criterion in {event[0] for event in self.events}:
            for place, (asked, client, seq, *answer) in enumerate(self.events):
                before = self.events[:place]
                overtaken = any(e[0] == criterion and e[1] == client and e[2] > seq for e in before)
                if asked == criterion and not overtaken:
                    found[criterion] = tuple(answer)
        return found

    def is_complete(self):
        given = self.labels()
        return len(given) == CRITERIA and all(
            value and (value != "cannot_tell" or reason) for value, reason, _ in given.values()
        )


class History(RuleBasedStateMachine):
    """One round with a few items and people, and everything that can happen to it."""

    replies = None

    def __init__(self):
        super().__init__()
        self.now = START
        self.clock = mock.patch("django.utils.timezone.now", side_effect=lambda: self.now)
        self.clock.start()
        self.database = transaction.atomic()
        self.database.__enter__()
        self.turn = 0

    def teardown(self):
        transaction.set_rollback(True)
        self.database.__exit__(None, None, None)
        self.clock.stop()

    @initialize(overlap=st.integers(1, 3), seed=st.integers(0, 99))
    def make_round(self, overlap, seed):
        # Their names decide the order of the replies, so they are the same in every history.
        self.people = [make_annotator(pseudonym=f"person-{n}") for n in range(PEOPLE)]
        self.round = services.create_round(
            collection=self.replies[0].conversation.collection,
            name=f"Round {number()}",
            purpose="calibration",
            guidelines="",
            overlap=overlap,
            replies=self.replies,
            annotators=self.people,
            seed=seed,
            created_by=None,
        )
        services.open_round(round_id=self.round.pk, actor=None)
        self.status, self.overlap, self.members = "open", overlap, set(range(PEOPLE))
        self.items = list(self.round.items.order_by("pk").values_list("pk", flat=True))
        self.asked = [
            list(item.asked.values_list("criterion_id", flat=True))
            for item in RoundItem.objects.filter(pk__in=self.items).order_by("pk")
        ]
        self.orders = [
            own_order(
                seed,
                person.pseudonym,
                list(self.round.items.values_list("pk", "reply__conversation_id")),
            )
            for person in self.people
        ]
        self.work = {}

    # What the model says -------------------------------------------------------------------

    def next_turn(self):
        self.turn += 1
        return self.turn

    def held(self, item, *, now=None):
        """Return how many hold the item; with `now`, without leases that have run out."""
        return sum(
            work.state == "submitted"
            or (work.state == "active" and (now is None or work.lease >= now))
            for (place, _), work in self.work.items()
            if place == item
        )

    def may_resume(self, item, who):
        return self.status == "open" and who in self.members and self.held(item) < self.overlap

    def hold(self, work):
        work.state, work.lease = "active", self.now + (STARTED if work.started else UNTOUCHED)

    def let_go(self, work, state):
        work.state, work.lease, work.turn = state, None, self.next_turn()

    def resume(self, work):
        self.hold(work)
        work.turn = self.next_turn()

    def offers(self, who):
        """Return the items that somebody would get, in order; what has run out is free."""
        open_ = [n for n in range(ITEMS) if self.held(n, now=self.now) < self.overlap]
        mine = {n: self.work[n, who] for n in open_ if (n, who) in self.work}
        lapsed = [n for n, work in mine.items() if work.state == "lapsed"]
        skipped = [n for n, work in mine.items() if work.state == "skipped" and work.skips < 2]
        fresh = [self.items.index(pk) for pk in self.orders[who]]
        return [
            *sorted(lapsed, key=lambda n: mine[n].turn),
            *[n for n in fresh if n in open_ and n not in mine],
            *sorted(skipped, key=lambda n: mine[n].turn),
        ]

    # What happens --------------------------------------------------------------------------

    def attempt(self, allowed, act, **arguments):
        """Do something, and see that it is refused exactly where the model says so."""
        if allowed:
            return act(**arguments)
        with pytest.raises(ValidationError), transaction.atomic():
            act(**arguments)
        return None

    def mine(self, item, who):
        return {
            "assignment_id": Assignment.objects.get(
                round_item=self.items[item], annotator=self.people[who]
            ).pk,
            "annotator": self.people[who],
        }

    @rule(minutes=st.sampled_from([1, 61, 60 * 71, 60 * 73]))
    def time_passes(self, minutes):
        self.now += timedelta(minutes=minutes)

    @rule(who=people)
    def claim(self, who):
        claiming = {"round_id": self.round.pk, "annotator": self.people[who]}
        if self.status != "open" or who not in self.members:
            self.attempt(False, services.claim_next, **claiming)
            return
        for key in sorted(self.work):
            work = self.work[key]
            if work.state == "active" and work.lease < self.now:
                self.let_go(work, "lapsed")
        active = [
            (work.turn, item)
            for (item, whose), work in self.work.items()
            if whose == who and work.state == "active"
        ]
        expected = min(active)[1] if active else next(iter(self.offers(who)), None)
        taken = services.claim_next(**claiming)
        if expected is None:
            assert taken is None
            return
        # Of several replies in progress any may come; of all others the first of the order.
        got = self.items.index(taken.round_item_id)
        assert got == expected or (got in [item for _, item in active])
        if (got, who) not in self.work:
            self.work[got, who] = Work(turn=self.next_turn())
            self.hold(self.work[got, who])
        elif active:
            self.hold(self.work[got, who])
        else:
            self.resume(self.work[got, who])

    @precondition(lambda self: self.work)
    @rule(
        data=st.data(),
        place=st.integers(0, CRITERIA - 1),
        client=st.sampled_from("ab"),
        seq=st.integers(0, 6),
        answer=answers,
    )
    def save(self, data, place, client, seq, answer):
        item, who = data.draw(st.sampled_from(sorted(self.work)))
        self.save_it(item, who, (self.asked[item][place], client, seq, *answer))

    def save_it(self, item, who, event):
        work, (criterion, client, seq, *answer) = self.work[item, who], event
        known = [e for e in work.events if e[1:3] == (client, seq)]
        frozen = self.status == "closed" or work.state in {"submitted", "declined", "surplus"}
        allowed = known == [event] if known else not frozen
        result = self.attempt(
            allowed,
            services.save_label,
            **self.mine(item, who),
            criterion_id=criterion,
            client=client,
            seq=seq,
            value=answer[0],
            reason=answer[1],
            comment=answer[2],
        )
        if not allowed:
            return
        if known:
            assert not result.applied
            return
        newest = max((e[2] for e in work.events if e[:2] == (criterion, client)), default=-1)
        assert result.applied is (seq > newest)
        work.events.append(event)
        work.started = True
        if work.state == "active":
            self.hold(work)
        elif self.may_resume(item, who):
            self.resume(work)

    @precondition(lambda self: self.work)
    @rule(data=st.data())
    def finish(self, data):
        """Answer all that is open, as people do, so that histories reach submission."""
        item, who = data.draw(st.sampled_from(sorted(self.work)))
        for criterion in self.asked[item]:
            seq = 100 + len(self.work[item, who].events)
            self.save_it(item, who, (criterion, "c", seq, "met", "", ""))
        self.submit_it(item, who)

    @precondition(lambda self: self.work)
    @rule(data=st.data())
    def submit(self, data):
        self.submit_it(*data.draw(st.sampled_from(sorted(self.work))))

    def submit_it(self, item, who):
        work = self.work[item, who]
        done = work.state in {"submitted", "surplus"}
        allowed = done or (
            work.state != "declined"
            and self.status != "closed"
            and who in self.members
            and work.is_complete()
        )
        self.attempt(allowed, services.submit_assignment, **self.mine(item, who))
        if allowed and not done:
            holds = work.state == "active" or self.held(item) < self.overlap
            work.state, work.lease = ("submitted" if holds else "surplus"), None
            work.turn = self.next_turn()

    @precondition(lambda self: self.work)
    @rule(data=st.data(), state=st.sampled_from(["skipped", "skipped", "declined"]))
    def leave(self, data, state):
        self.leave_it(*data.draw(st.sampled_from(sorted(self.work))), state)

    @rule(who=people)
    def claim_and_skip(self, who):
        self.claim(who)
        for item in range(ITEMS):
            if (item, who) in self.work and self.work[item, who].state == "active":
                self.leave_it(item, who, "skipped")

    def leave_it(self, item, who, state):
        work = self.work[item, who]
        act = {"skipped": services.skip_assignment, "declined": services.decline_assignment}[state]
        allowed = work.state in {"active", "lapsed", "skipped", state}
        self.attempt(allowed, act, **self.mine(item, who))
        if allowed and work.state != state:
            self.let_go(work, state)
            work.skips += state == "skipped"

    @precondition(lambda self: self.work)
    @rule(data=st.data())
    def reopen(self, data):
        item, who = data.draw(st.sampled_from(sorted(self.work)))
        work = self.work[item, who]
        fits = self.status == "open" and who in self.members
        allowed = work.state == "active" or (work.state == "submitted" and fits)
        self.attempt(allowed, services.reopen_assignment, **self.mine(item, who))
        if allowed and work.state == "submitted":
            self.resume(work)

    @precondition(lambda self: self.work)
    @rule(data=st.data())
    def renew(self, data):
        item, who = data.draw(st.sampled_from(sorted(self.work)))
        work = self.work[item, who]
        services.renew_lease(**self.mine(item, who))
        if work.state == "active":
            self.hold(work)
        elif work.state == "lapsed" and self.may_resume(item, who):
            self.resume(work)

    @rule(overlap=st.integers(1, 3))
    def change_overlap(self, overlap):
        allowed = self.status != "closed"
        self.attempt(
            allowed, services.set_overlap, round_id=self.round.pk, overlap=overlap, actor=None
        )
        self.overlap = overlap if allowed else self.overlap

    @rule(status=st.sampled_from([*["open"] * 6, *["paused"] * 3, "closed"]))
    def change_status(self, status):
        ways = {"open": {"paused", "closed"}, "paused": {"open", "closed"}, "closed": set()}
        act = {"open": services.open_round, "paused": services.pause_round,
               "closed": services.close_round}[status]  # fmt: skip
        # A closed round is the end of a history, so it comes late.
        allowed = status in ways[self.status]
        if status == "closed" and self.turn < 25:
            return
        self.attempt(allowed, act, round_id=self.round.pk, actor=None)
        self.status = status if allowed else self.status

    @rule()
    def the_last_comes_or_goes(self):
        who = PEOPLE - 1
        member = {"round_id": self.round.pk, "annotator": self.people[who], "actor": None}
        if who not in self.members:
            self.attempt(self.status != "closed", services.add_member, **member)
            self.members |= {who} if self.status != "closed" else set()
            return
        services.remove_member(**member)
        self.members.remove(who)
        for item in range(ITEMS):
            work = self.work.get((item, who))
            if work and work.state == "active":
                self.let_go(work, "lapsed")

    # What must hold after each step ----------------------------------------------------------

    @invariant()
    def the_work_is_what_the_model_says(self):
        rows = Assignment.objects.filter(round_item__round=self.round)
        stored = {
            (self.items.index(row.round_item_id), self.people_index(row.annotator_id)): row
            for row in rows
        }
        assert len(stored) == rows.count()
        assert {key: (row.state, row.lease_until) for key, row in stored.items()} == {
            key: (work.state, work.lease) for key, work in self.work.items()
        }

    def people_index(self, pk):
        return next(place for place, person in enumerate(self.people) if person.pk == pk)

    @invariant()
    def nobody_holds_more_than_the_overlap_but_what_was_held_before(self):
        for place, item in enumerate(self.items):
            held = Assignment.objects.filter(round_item=item, slot__isnull=False).count()
            slots = Slot.objects.filter(round_item=item).count()
            assert held == self.held(place)
            assert slots == max(self.overlap, held)

    @invariant()
    def labels_are_the_replay_of_all_that_was_saved(self):
        for (item, who), work in self.work.items():
            pk = self.mine(item, who)["assignment_id"]
            labels = {
                label.criterion_id: (label.value, label.reason, label.comment)
                for label in Label.objects.filter(assignment=pk)
            }
            replayed = {
                criterion: (state.value, state.reason, state.comment)
                for criterion, state in replay_labels(pk).items()
            }
            assert labels == replayed == work.labels()
            events = LabelEvent.objects.filter(assignment=pk).order_by("id")
            kept = [(e.criterion_id, e.client, e.seq, e.value, e.reason) for e in events]
            assert kept == [event[:5] for event in work.events]
            assert work.is_complete() or work.state not in {"submitted", "surplus"}

    @invariant()
    def what_is_shown_as_waiting_is_what_a_claim_would_give(self):
        who = self.turn % PEOPLE
        shown = {p.round.pk: p.available for p in rounds_for(self.people[who])}
        open_to = self.status == "open" and who in self.members
        assert shown.get(self.round.pk, 0) == (len(self.offers(who)) if open_to else 0)


def run(examples, steps):
    collection = make_collection()
    History.replies = [
        make_reply(make_conversation(collection, criteria=CRITERIA)) for _ in range(ITEMS)
    ]
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(History, settings=profile)
    assert list(verify_assignments(Assignment.objects.all())) == []


@pytest.mark.django_db
def test_random_histories_never_exceed_the_overlap_and_lose_nothing():
    run(examples=20, steps=40)


@pytest.mark.long
@pytest.mark.django_db
def test_many_long_random_histories_never_exceed_the_overlap_and_lose_nothing():
    run(examples=50, steps=40)

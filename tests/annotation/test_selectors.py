"""What counts, what waits and how far rounds are, read in a constant number of queries."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation import selectors, services
from annotation.agreement import CANNOT_TELL, MET, NOT_MET
from annotation.models import Adjudication, Assignment, Round, RoundItem, Slot
from corpus.models import Dimension
from tests.factories import (
    label_item,
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_respondent,
    make_round,
    make_rubric,
    publish_rubric,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


@pytest.fixture
def collection():
    return make_collection()


@pytest.fixture
def people():
    return [make_annotator() for _ in range(3)]


def reply_in(collection, criteria=1):
    return make_reply(make_conversation(collection, criteria=criteria))


def labelled(replies, answers, **given):
    """Make a round on replies that each person of `answers` has labelled with one answer."""
    made = make_round(replies, list(answers), **{"overlap": len(answers), **given})
    for annotator, value in answers.items():
        for _ in range(len(replies)):
            work = services.claim_next(round_id=made.pk, annotator=annotator)
            label_item(work.round_item, annotator, value)
    return made


def adjudicate(made, value):
    item = made.items.get()
    return Adjudication.objects.create(
        round=made,
        reply=item.reply,
        criterion=item.asked.get().criterion,
        value=value,
        reason="Read again.",
        adjudicator=make_annotator(),
    )


def given(*rounds):
    """Return who answered what, as round_ratings says."""
    found = selectors.round_ratings([made.pk for made in rounds])
    return dict(zip(found.annotator.tolist(), found.answer.tolist(), strict=True))


def decided(*rounds):
    """Return met and provenance of the only unit."""
    found = selectors.consensus_units([made.pk for made in rounds])
    assert len(found.met) == 1
    return int(found.met[0]), str(found.provenance[0])


def digest(*rounds):
    return selectors.labels_digest([made.pk for made in rounds])


def test_ratings_carry_the_unit_its_conversation_dimension_and_respondent(collection, people):
    reply = make_reply(
        make_conversation(collection, criteria=1, dimensions=["moral_judgement"]),
        make_respondent(),
    )
    made = labelled([reply], {people[0]: "met", people[1]: "cannot_tell"})
    found = selectors.round_ratings([made.pk, made.pk])
    assert given(made) == {people[0].pk: MET, people[1].pk: CANNOT_TELL}
    criterion = made.items.get().asked.get().criterion_id
    dimension = collection.dimensions.get(slug="moral_judgement").pk
    for name, value in {
        "reply": reply.pk,
        "criterion": criterion,
        "conversation": reply.conversation_id,
        "dimension": dimension,
        "respondent": reply.respondent_id,
    }.items():
        assert getattr(found, name).tolist() == [value, value]


def test_only_submitted_answers_count(collection, people):
    made = make_round([reply_in(collection)], people, overlap=3)
    item = made.items.get()
    done = label_item(item, people[0])
    label_item(item, people[1], submit=False)
    assert given(made) == {people[0].pk: MET}
    services.reopen_assignment(assignment_id=done.pk, annotator=people[0])
    assert given(made) == {}


def test_surplus_practice_gold_and_repeat_never_count(collection, people):
    ada, ben, _ = people
    made = make_round([reply_in(collection)], [ada, ben], overlap=1)
    work = label_item(made.items.get(), ada, submit=False)
    past = timezone.now() - timedelta(seconds=1)
    Assignment.objects.filter(pk=work.pk).update(lease_until=past)
    label_item(made.items.get(), ben, "not_met")
    assert services.submit_assignment(assignment_id=work.pk, annotator=ada).state == "surplus"
    assert given(made) == {ben.pk: NOT_MET}
    assert given(labelled([reply_in(collection)], {ada: "met"}, purpose="practice")) == {}
    plain = made.items.get()
    for occurrence, kind in enumerate(("gold", "repeat"), start=1):
        other = RoundItem.objects.create(
            round=made, reply=plain.reply, rubric=plain.rubric, kind=kind,
            occurrence=occurrence, reserved_for=ada,
        )  # fmt: skip
        other.asked.create(criterion=plain.asked.get().criterion)
        Slot.objects.create(round_item=other, number=1)
        label_item(other, ada)
    assert given(made) == {ben.pk: NOT_MET}


def test_of_one_annotator_the_answer_submitted_last_counts(collection, people):
    reply, ada = reply_in(collection), people[0]
    first, second = labelled([reply], {ada: "met"}), labelled([reply], {ada: "not_met"})
    assert given(first, second) == {ada.pk: NOT_MET}
    before = digest(first, second)
    work = Assignment.objects.get(round_item__round=first)
    for act in (services.reopen_assignment, services.submit_assignment):
        act(assignment_id=work.pk, annotator=ada)
    assert given(first, second) == {ada.pk: MET}
    assert digest(first, second) != before
    assert given(first) == {ada.pk: MET}
    assert given(second) == {ada.pk: NOT_MET}


def test_the_dimension_is_the_published_one_else_the_newest(collection, people):
    def dimension(made):
        found = selectors.round_ratings([made.pk]).dimension
        return Dimension.objects.get(pk=int(found[0])).slug

    conversation = make_conversation(collection, criteria=1, dimensions=["recognition"])
    made = labelled([make_reply(conversation)], {people[0]: "met"})
    assert dimension(made) == "recognition"
    old = conversation.rubrics.get().items.get()
    new = make_rubric(conversation, ["New."], publish=False)
    new.items.create(
        criterion=old.criterion,
        dimension=collection.dimensions.get(slug="de_escalation"),
        weight=3,
        position=2,
    )
    before = selectors.agreement_of([made.pk])
    assert dimension(made) == "recognition"
    publish_rubric(new)
    assert dimension(made) == "de_escalation"
    after = selectors.agreement_of([made.pk])
    assert [slug for slug, _, _ in after.dimensions] == ["de_escalation"]
    assert after.rubrics_digest != before.rubrics_digest


@pytest.mark.parametrize(
    ("answers", "met", "provenance"),
    [
        (["met", "met"], 1, "unanimous"),
        (["not_met", "not_met", "met"], 0, "majority"),
        (["met", "not_met"], -1, "none"),
        (["met", "cannot_tell"], -1, "none"),
        (["met", "met", "cannot_tell"], 1, "majority"),
        (["cannot_tell"], -1, "none"),
        (["met"], 1, "single"),
    ],
)
def test_consensus_is_more_than_half_of_all_answers(collection, people, answers, met, provenance):
    made = labelled([reply_in(collection)], dict(zip(people, answers, strict=False)))
    assert decided(made) == (met, provenance)


def test_one_answer_is_enough_only_where_one_was_wanted(collection, people):
    reply = reply_in(collection)
    waiting = labelled([reply], {people[0]: "met"}, overlap=2)
    assert decided(waiting) == (-1, "none")
    single = labelled([reply_in(collection)], {people[0]: "met"})
    both = selectors.consensus_units([waiting.pk, single.pk])
    assert sorted(both.provenance.tolist()) == ["none", "single"]


def test_the_newest_adjudication_decides(collection, people):
    made = labelled([reply_in(collection)], {people[0]: "met", people[1]: "not_met"})
    digests = {digest(made)}
    for value, expected in [
        ("met", (1, "adjudicated")),
        ("unresolvable", (-1, "unresolvable")),
        ("not_met", (0, "adjudicated")),
    ]:
        adjudicate(made, value)
        assert decided(made) == expected
        digests.add(digest(made))
    assert len(digests) == 4


def test_adjudications_of_practice_stay_in_practice(collection, people):
    reply = reply_in(collection)
    made = labelled([reply], {people[0]: "met", people[1]: "met"})
    practice = labelled([reply], {people[2]: "not_met"}, purpose="practice")
    before = digest(made, practice)
    adjudicate(practice, "not_met")
    assert decided(made, practice) == (1, "unanimous")
    assert digest(made, practice) == before == digest(made)


def test_nothing_gives_empty_arrays_and_an_undefined_agreement(collection):
    made = make_round([reply_in(collection)])
    assert selectors.round_ratings([]).answer.shape == (0,)
    assert selectors.consensus_units([made.pk]).met.shape == (0,)
    report = selectors.agreement_of([made.pk])
    assert report.overall.alpha.value is None
    assert (report.dimensions, report.n_replies, report.last_event) == ((), 0, 0)
    assert digest() == digest(made)


def test_the_digest_changes_when_and_only_when_answers_that_count_do(collection, people):
    ada, ben, _ = people
    made = make_round([reply_in(collection)], people, overlap=2)
    item = made.items.get()
    empty = digest(made)
    work = label_item(item, ada, submit=False)
    assert digest(made) == empty
    services.submit_assignment(assignment_id=work.pk, annotator=ada)
    one = digest(made)
    assert one != empty
    Round.objects.filter(pk=made.pk).update(name="Renamed", overlap=3)
    label_item(item, ben, "not_met", submit=False)
    assert digest(made, made) == one
    services.reopen_assignment(assignment_id=work.pk, annotator=ada)
    assert digest(made) == empty
    services.submit_assignment(assignment_id=work.pk, annotator=ada)
    assert digest(made) == one


def test_agreement_is_computed_once_for_a_state_of_the_labels(collection, people, monkeypatch):
    made = labelled([reply_in(collection, 3)], {people[0]: "met"}, overlap=2)
    services.add_member(round_id=made.pk, annotator=people[1], actor=None)
    computed = []
    agreement = selectors.agreement_of.__globals__
    compute = agreement["_compute"]
    monkeypatch.setitem(agreement, "_compute", lambda *a: computed.append(a) or compute(*a))
    first = selectors.agreement_of([made.pk])
    assert selectors.agreement_of([made.pk, made.pk]) == first
    assert len(computed) == 1
    label_item(made.items.get(), people[1], "met")
    second = selectors.agreement_of([made.pk])
    assert len(computed) == 2
    assert (first.n_annotators, second.n_annotators) == (1, 2)
    assert (first.overall.n_pairable, second.overall.n_pairable) == (0, 3)
    Dimension.objects.filter(slug="recognition").update(name="Recognising risk")
    names = [name for _, name, _ in selectors.agreement_of([made.pk]).dimensions]
    assert "Recognising risk" in names


def progress(annotator, made):
    return next(p for p in selectors.rounds_for(annotator) if p.round.pk == made.pk)


def drained(annotator, made):
    """Return how many replies claims really give, each declined at once."""
    count = 0
    while work := services.claim_next(round_id=made.pk, annotator=annotator):
        services.decline_assignment(assignment_id=work.pk, annotator=annotator)
        count += 1
    return count


def test_what_waits_is_exactly_what_claims_give(collection, people):
    ada, ben, cleo = people
    made = make_round([reply_in(collection) for _ in range(9)], people, overlap=1)

    def claim(annotator):
        return services.claim_next(round_id=made.pk, annotator=annotator)

    def leave(work, act=services.skip_assignment):
        act(assignment_id=work.pk, annotator=work.annotator)

    for _ in range(9):
        leave(claim(ada))
    twice = claim(ada)
    leave(twice)
    leave(claim(ada), services.decline_assignment)
    past = timezone.now() - timedelta(seconds=1)
    Assignment.objects.filter(pk=claim(ben).pk).update(lease_until=past)
    assert claim(cleo) is not None
    shown = progress(ada, made)
    assert shown.open_assignment is None
    # Of nine: one skipped twice, one declined, one in Cleo's hands; Ben's lease has run out.
    assert 6 <= shown.available <= 7
    assert shown.available == drained(ada, made)
    assert progress(ada, made).available == 0


def test_a_place_beyond_a_lowered_overlap_is_not_waiting_when_its_lease_runs_out(
    collection, people
):
    ada, *others = people
    made = make_round([reply_in(collection)], people, overlap=2)
    held = [services.claim_next(round_id=made.pk, annotator=other) for other in others]
    services.set_overlap(round_id=made.pk, overlap=1, actor=None)
    for work, waiting in zip(held, (0, 1), strict=True):
        past = timezone.now() - timedelta(seconds=1)
        Assignment.objects.filter(pk=work.pk).update(lease_until=past)
        assert progress(ada, made).available == waiting
    assert drained(ada, made) == 1


def test_progress_counts_what_is_done_in_hand_and_waiting(collection, people):
    ada = people[0]
    made = make_round([reply_in(collection) for _ in range(4)], [ada], overlap=1)
    for item in list(made.items.all())[:2]:
        label_item(item, ada)
    work = services.claim_next(round_id=made.pk, annotator=ada)
    shown = progress(ada, made)
    assert (shown.done, shown.total, shown.available) == (2, 4, 1)
    assert (shown.open_assignment, shown.seconds) == (work, None)
    Assignment.objects.filter(state="submitted").update(active_seconds=150)
    assert progress(ada, made).duration == "about 2 minutes"


@pytest.mark.parametrize("act", [services.pause_round, services.close_round])
def test_a_round_that_hands_out_nothing_has_nothing_waiting(collection, people, act):
    made = make_round([reply_in(collection)], people)
    act(round_id=made.pk, actor=None)
    assert progress(people[0], made).available == 0


def test_rounds_are_mine_when_i_label_or_have_worked_in_them(collection, people):
    ada, ben, _ = people
    made = make_round([reply_in(collection)], [ada, ben])
    make_round([reply_in(collection)], [ada], status="draft")
    make_round([reply_in(collection)])
    services.claim_next(round_id=made.pk, annotator=ada)
    for annotator in (ada, ben):
        services.remove_member(round_id=made.pk, annotator=annotator, actor=None)
    assert [(p.round, p.available) for p in selectors.rounds_for(ada)] == [(made, 0)]
    assert selectors.rounds_for(ben) == []


def test_the_overview_counts_labellings_and_finished_replies(collection, people):
    made = make_round([reply_in(collection) for _ in range(2)], people[:2], overlap=2)
    first, second = made.items.order_by("pk")
    for annotator in people[:2]:
        label_item(first, annotator)
    services.claim_next(round_id=made.pk, annotator=people[0])
    shown = selectors.round_overview(made)
    assert (shown.items, shown.wanted, shown.submitted, shown.active) == (2, 4, 2, 1)
    assert shown.complete == 1
    assert {(m.annotator, m.submitted, m.active) for m in shown.members} == {
        (people[0], 1, 1),
        (people[1], 1, 0),
    }


def queries(act, *arguments):
    with CaptureQueriesContext(connection) as captured:
        act(*arguments)
    return len(captured)


def test_queries_grow_neither_with_items_nor_criteria_nor_people(collection, people):
    counts = []
    for items, criteria, more in ((2, 2, 0), (7, 6, 4)):
        crowd = [*people[:2], *(make_annotator() for _ in range(more))]
        replies = [reply_in(collection, criteria) for _ in range(items)]
        made = labelled(replies, dict.fromkeys(crowd, "met"))
        work = made.items.first().assignments.first()
        cache.clear()
        counts.append(
            {
                "rounds_for": queries(selectors.rounds_for, crowd[-1]),
                "round_overview": queries(selectors.round_overview, made),
                "round_ratings": queries(selectors.round_ratings, [made.pk]),
                "consensus_units": queries(selectors.consensus_units, [made.pk]),
                "labels_digest": queries(selectors.labels_digest, [made.pk]),
                "agreement_of": queries(selectors.agreement_of, [made.pk]),
                "submitted_by": queries(selectors.submitted_by, crowd[0], made),
                "dimensions_of": queries(selectors.dimensions_of, made),
                "labelling_page": queries(selectors.labelling_page, work),
                "replay_labels": queries(selectors.replay_labels, work.pk),
            }
        )
    assert counts[0] == counts[1]

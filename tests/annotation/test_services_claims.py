"""Who gets which reply, when, and what gives a slot back."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation import services
from annotation.allocation import own_order
from annotation.models import Annotator, Assignment, AssignmentEvent, RoundItem, Slot
from tests.factories import (
    label_item,
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_respondent,
    make_round,
    make_user,
    number,
)

pytestmark = pytest.mark.django_db
REFUSED = "practice rounds alone"


@pytest.fixture
def ada():
    return make_annotator()


@pytest.fixture
def ben():
    return make_annotator()


def replies(count, **extra):
    collection = make_collection()
    return [make_reply(make_conversation(collection, criteria=1), **extra) for _ in range(count)]


def claim(round_, annotator):
    return services.claim_next(round_id=round_.pk, annotator=annotator)


def skip(assignment):
    return services.skip_assignment(assignment_id=assignment.pk, annotator=assignment.annotator)


def decline(assignment, reason=""):
    return services.decline_assignment(
        assignment_id=assignment.pk, annotator=assignment.annotator, reason=reason
    )


def save(assignment):
    asked = assignment.round_item.asked.get()
    return services.save_label(
        assignment_id=assignment.pk,
        annotator=assignment.annotator,
        criterion_id=asked.criterion_id,
        client="tab",
        seq=number(),
        value="met",
    )


def finish(assignment):
    save(assignment)
    return services.submit_assignment(assignment_id=assignment.pk, annotator=assignment.annotator)


def lapse(assignment, **before):
    past = timezone.now() - timedelta(**(before or {"seconds": 1}))
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=past)


def history(assignment):
    return list(assignment.events.values_list("kind", flat=True))


def test_new_replies_come_in_the_annotators_own_order(ada):
    round_ = make_round(replies(6), [ada], overlap=1, seed=3)
    pairs = RoundItem.objects.filter(round=round_).values_list("id", "reply__conversation_id")
    given = [finish(claim(round_, ada)) for _ in range(6)]
    assert [a.round_item_id for a in given] == own_order(3, ada.pseudonym, list(pairs))
    assert [a.position for a in given] == [1, 2, 3, 4, 5, 6]
    assert claim(round_, ada) is None


def test_own_work_in_progress_comes_back_first_and_is_held_for_longer(ada, settings):
    round_ = make_round(replies(3), [ada])
    first = claim(round_, ada)
    lapse(first, hours=-0.01)
    again = claim(round_, ada)
    assert again == first
    assert history(first) == ["claimed"]
    minutes = timedelta(minutes=settings.LEASE_MINUTES_UNTOUCHED)
    assert minutes - timedelta(seconds=30) < again.lease_until - timezone.now() <= minutes


def test_own_lapsed_work_comes_before_new_and_skipped_after_it(ada):
    round_ = make_round(replies(3), [ada], overlap=1)
    skipped = skip(claim(round_, ada))
    lapsed = claim(round_, ada)
    lapse(lapsed)
    taken_up = claim(round_, ada)
    assert taken_up == lapsed
    assert history(lapsed) == ["claimed", "lapsed", "resumed"]
    finish(taken_up)
    fresh = claim(round_, ada)
    assert fresh.pk not in {skipped.pk, lapsed.pk}
    finish(fresh)
    assert claim(round_, ada) == skipped
    assert history(skipped) == ["claimed", "skipped", "resumed"]


def test_what_was_skipped_twice_is_not_offered_again_and_can_still_be_taken_up(ada):
    round_ = make_round(replies(1), [ada])
    work = skip(claim(round_, ada))
    assert skip(claim(round_, ada)) == work
    assert claim(round_, ada) is None
    assert save(work).assignment.state == "active"
    assert claim(round_, ada) == work


def test_of_several_skipped_replies_the_one_skipped_first_comes_first(ada):
    round_ = make_round(replies(3), [ada], overlap=1)
    skipped = [skip(claim(round_, ada)) for _ in range(3)]
    assert [skip(claim(round_, ada)).pk for _ in range(3)] == [a.pk for a in skipped]


def test_skipping_twice_in_a_row_is_skipping_once(ada):
    round_ = make_round(replies(1), [ada])
    work = skip(claim(round_, ada))
    skip(work)
    assert claim(round_, ada) == work


def test_a_skipped_reply_keeps_its_draft(ada):
    round_ = make_round(replies(1), [ada])
    work = claim(round_, ada)
    label = save(work).label
    skip(work)
    assert claim(round_, ada).labels.get() == label


def test_declining_frees_the_slot_for_good_and_costs_nothing(ada, ben):
    round_ = make_round(replies(1), [ada, ben], overlap=1)
    work = claim(round_, ada)
    assert claim(round_, ben) is None
    declined = decline(work, "  Too close to home.  ")
    assert (declined.state, declined.slot, declined.reason) == (
        "declined",
        None,
        "Too close to home.",
    )
    assert claim(round_, ada) is None
    assert claim(round_, ben) is not None


@pytest.mark.parametrize("reason", ["a\x00b", "\ud800", "x" * 501])
def test_a_reason_that_cannot_be_kept_is_refused(ada, reason):
    work = claim(make_round(replies(1), [ada]), ada)
    with pytest.raises(ValidationError, match="reason"):
        decline(work, reason)
    work.refresh_from_db()
    assert work.state == "active"


def test_finished_work_is_neither_skipped_nor_declined(ada):
    round_ = make_round(replies(1), [ada])
    work = finish(claim(round_, ada))
    for act in (skip, decline):
        with pytest.raises(ValidationError, match="submitted already"):
            act(work)


def test_each_annotator_has_a_reply_once_and_each_reply_its_overlap(ada, ben):
    cleo = make_annotator()
    round_ = make_round(replies(1), [ada, ben, cleo], overlap=2)
    finish(claim(round_, ada))
    assert claim(round_, ada) is None
    assert claim(round_, ben) is not None
    assert claim(round_, cleo) is None


def test_a_lease_that_ran_out_gives_the_slot_to_others(ada, ben):
    round_ = make_round(replies(1), [ada, ben], overlap=1)
    work = claim(round_, ada)
    assert claim(round_, ben) is None
    lapse(work)
    assert claim(round_, ben) is not None
    work.refresh_from_db()
    assert (work.state, work.slot) == ("lapsed", None)
    assert claim(round_, ada) is None


def test_a_reply_that_is_reserved_goes_to_nobody_else(ada, ben):
    round_ = make_round(replies(1), [ada, ben])
    plain = round_.items.get()
    kept = RoundItem.objects.create(
        round=round_,
        reply=plain.reply,
        rubric=plain.rubric,
        kind="repeat",
        occurrence=1,
        reserved_for=ada,
    )
    Slot.objects.create(round_item=kept, number=1)
    assert [finish_bare(claim(round_, ben)), claim(round_, ben)] == [plain.pk, None]
    assert {finish_bare(claim(round_, ada)) for _ in range(2)} == {plain.pk, kept.pk}


def finish_bare(assignment):
    """Decline, and return the item: a reserved item here asks nothing."""
    return decline(assignment).round_item_id


@pytest.mark.parametrize("where", ["reply", "conversation"])
@pytest.mark.parametrize("name", ["pseudonym", "e-mail address", "name"])
def test_nobody_gets_what_they_wrote(where, name):
    user = make_user(name=f"Zoë “Z” Quinn {number()}")
    author = make_annotator(user, pseudonym=f"writer-{number()}-é")
    names = {"pseudonym": author.pseudonym, "e-mail address": user.email, "name": user.name}
    others, written = ["somebody-else"], ["somebody-else", names[name]]
    conversation = make_conversation(
        make_collection(), authors=written if where == "conversation" else others
    )
    reply = make_reply(conversation, authors=written if where == "reply" else others)
    reader = make_annotator()
    round_ = make_round([reply], [author, reader], overlap=1)
    assert claim(round_, author) is None
    assert claim(round_, reader) is not None


def test_a_name_inside_another_name_is_not_an_author():
    conversation = make_conversation(make_collection(), authors=["ada-lovelace", 'x"ada"y'])
    ada = make_annotator(pseudonym="ada")
    assert claim(make_round([make_reply(conversation)], [ada]), ada) is not None


def test_only_active_members_of_an_open_round_claim(ada, ben):
    round_ = make_round(replies(2), [ada], status="draft")
    steps = [
        (None, "draft"),
        (services.open_round, None),
        (services.pause_round, "paused"),
        (services.open_round, None),
        (services.close_round, "closed"),
    ]
    for act, closed_because in steps:
        if act:
            act(round_id=round_.pk, actor=None)
        if closed_because:
            with pytest.raises(ValidationError, match=f"round is {closed_because}"):
                claim(round_, ada)
        else:
            assert claim(round_, ada) is not None
            with pytest.raises(ValidationError, match="not in this round"):
                claim(round_, ben)


def test_somebody_taken_out_claims_no_more_and_their_open_work_is_free(ada, ben):
    round_ = make_round(replies(1), [ada, ben], overlap=1)
    work = claim(round_, ada)
    services.remove_member(round_id=round_.pk, annotator=ada, actor=None)
    with pytest.raises(ValidationError, match="not in this round"):
        claim(round_, ada)
    assert claim(round_, ben) is not None
    work.refresh_from_db()
    assert work.state == "lapsed"


def test_renewing_holds_the_slot_even_after_the_lease_ran_out(ada, ben):
    round_ = make_round(replies(1), [ada, ben], overlap=1)
    work = claim(round_, ada)
    lapse(work)
    renewed = services.renew_lease(assignment_id=work.pk, annotator=ada)
    assert renewed.lease_until > timezone.now()
    assert claim(round_, ben) is None


def test_renewing_lapsed_work_takes_a_free_slot_and_never_somebody_elses(ada, ben):
    round_ = make_round(replies(1), [ada, ben], overlap=1)
    work = claim(round_, ada)
    lapse(work)
    others = claim(round_, ben)
    assert services.renew_lease(assignment_id=work.pk, annotator=ada).state == "lapsed"
    skip(others)
    assert services.renew_lease(assignment_id=work.pk, annotator=ada).state == "active"
    services.pause_round(round_id=round_.pk, actor=None)
    lapse(work)
    with transaction.atomic():
        services.slots.lapse_expired(round_.pk, timezone.now())
    assert services.renew_lease(assignment_id=work.pk, annotator=ada).state == "lapsed"


def test_renewing_finished_work_changes_nothing(ada):
    round_ = make_round(replies(1), [ada])
    work = finish(claim(round_, ada))
    renewed = services.renew_lease(assignment_id=work.pk, annotator=ada)
    assert (renewed.state, renewed.lease_until) == ("submitted", None)


def test_what_another_tab_finished_is_passed_over(ada, monkeypatch):
    round_ = make_round(replies(2), [ada], overlap=1)
    work = skip(claim(round_, ada))
    chosen = services.claims._candidates

    def finished_in_between(*arguments):
        found = chosen(*arguments)
        if Assignment.objects.get(pk=work.pk).state == "skipped":
            decline(work)
        return [(work.pk, work.round_item_id), *found]

    monkeypatch.setattr(services.claims, "_candidates", finished_in_between)
    assert claim(round_, ada) != work
    work.refresh_from_db()
    assert (work.state, work.slot) == ("declined", None)


def test_two_tabs_get_the_same_reply(ada, monkeypatch):
    round_ = make_round(replies(3), [ada])
    chosen = services.claims._candidates

    def claimed_in_between(*arguments):
        found = chosen(*arguments)
        monkeypatch.setattr(services.claims, "_candidates", chosen)
        claim(round_, ada)
        return list(reversed(found))

    monkeypatch.setattr(services.claims, "_candidates", claimed_in_between)
    taken = claim(round_, ada)
    assert taken == Assignment.objects.get(annotator=ada)


def test_a_round_that_closes_in_between_gives_nothing(ada, monkeypatch):
    round_ = make_round(replies(1), [ada])
    chosen = services.claims._candidates

    def closed_in_between(*arguments):
        monkeypatch.setattr(services.claims, "_candidates", chosen)
        found = chosen(*arguments)
        services.close_round(round_id=round_.pk, actor=None)
        return found

    monkeypatch.setattr(services.claims, "_candidates", closed_in_between)
    assert claim(round_, ada) is None
    assert not Assignment.objects.exists()


def test_somebody_who_became_a_researcher_claims_in_practice_alone():
    user = make_user(roles=["clinician"])
    both = make_annotator(user)
    round_ = make_round(replies(1), [both])
    practice = make_round(replies(1), [both], purpose="practice")
    user.groups.add(make_user(roles=["researcher"]).groups.get())
    with pytest.raises(ValidationError, match=REFUSED):
        claim(round_, both)
    assert claim(practice, both) is not None
    services.add_member(
        round_id=round_.pk, annotator=both, actor=None, override_reason="Nobody else is left."
    )
    assert claim(round_, both) is not None


def test_a_claim_reads_the_same_number_of_times_whatever_the_size():
    counts = []
    for size in (2, 12):
        annotator = make_annotator()
        round_ = make_round(replies(size), [annotator])
        with CaptureQueriesContext(connection) as counted:
            claim(round_, annotator)
        counts.append(len(counted))
    assert counts[0] == counts[1]


def test_replies_of_one_conversation_each_have_their_own_slots(ada, ben):
    conversation = make_conversation(make_collection(), criteria=1)
    pair = [make_reply(conversation, make_respondent()) for _ in range(2)]
    round_ = make_round(pair, [ada, ben], overlap=2)
    for annotator in (ada, ben):
        for item in round_.items.all():
            label_item(item, annotator)
    assert Annotator.objects.filter(assignments__state="submitted").distinct().count() == 2
    assert Assignment.objects.filter(state="submitted").count() == 4
    assert AssignmentEvent.objects.filter(kind="submitted").count() == 4

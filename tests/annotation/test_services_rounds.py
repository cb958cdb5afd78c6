"""Rounds are made whole or not at all, and a change of the overlap never takes work away."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from annotation import services
from annotation.models import Assignment, Round, RoundItem, RoundMember, Slot
from distressbench_site.accounts.models import AuditEvent
from tests.factories import (
    label_item,
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_round,
    make_rubric,
    make_user,
)

pytestmark = pytest.mark.django_db


def make(replies, annotators=(), **given):
    if "collection" not in given:
        given["collection"] = replies[0].conversation.collection
    return services.create_round(
        **{
            "name": "First round",
            "purpose": "calibration",
            "guidelines": "",
            "overlap": 2,
            "replies": replies,
            "annotators": annotators,
            "created_by": None,
            **given,
        }
    )


def slots_of(round_):
    return sorted(Slot.objects.filter(round_item__round=round_).values_list("number", flat=True))


def held(round_):
    return Assignment.objects.filter(
        round_item__round=round_, state__in=["active", "submitted"]
    ).count()


def set_overlap(round_, overlap):
    return services.set_overlap(round_id=round_.pk, overlap=overlap, actor=None)


def claim(round_, annotator):
    return services.claim_next(round_id=round_.pk, annotator=annotator)


def test_a_round_asks_every_criterion_of_the_published_rubric_of_each_reply():
    collection = make_collection()
    one = make_conversation(collection, criteria=["Old."])
    make_rubric(one, ["New first.", "New second."])
    make_rubric(one, ["Still a draft."], publish=False)
    two = make_conversation(collection, criteria=3)
    replies = [make_reply(two), make_reply(one), make_reply(two)]
    user, ada = make_user(), make_annotator()
    made = make(replies, [ada, ada], created_by=user, name="  Spring  ", overlap=3, seed=5)
    assert (made.name, made.status, made.seed, made.created_by) == ("Spring", "draft", 5, user)
    items = list(made.items.order_by("position"))
    assert [item.reply for item in items] == replies
    assert [item.asked.count() for item in items] == [3, 2, 3]
    asked = items[1].asked.values_list("criterion__text", flat=True)
    assert list(asked) == ["New first.", "New second."]
    assert slots_of(made) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert list(made.members.values_list("annotator", "active")) == [(ada.pk, True)]
    event = AuditEvent.objects.get(action="round made")
    assert (event.actor, event.target) == (user, "Spring")
    assert event.detail == {"replies": 3, "overlap": 3}


def test_a_reply_given_twice_is_one_item():
    reply = make_reply()
    assert make([reply, reply]).items.count() == 1


def bad(match, **given):
    return pytest.param(match, given, id=match)


@pytest.mark.parametrize(
    ("match", "given"),
    [
        bad("at least one reply", replies=[]),
        bad("cannot be blank", name="  "),
        bad("name has a character", name="a\x00"),
        bad("name has at most", name="x" * 201),
        bad("guideline has a character", guidelines="\ud800"),
        bad("not a valid choice", purpose="fun"),
        bad("less than or equal to 10", overlap=11),
        bad("greater than or equal to 1", overlap=0),
        bad("greater than or equal to 0", seed=-1),
        bad("reason has a character", override_reason="\x00"),
    ],
)
def test_a_round_that_cannot_be_is_refused_whole(match, given):
    reply = make_reply()
    replies = given.pop("replies", [reply])
    with pytest.raises(ValidationError, match=match):
        make(replies, **{"collection": reply.conversation.collection, **given})
    assert not Round.objects.exists()
    assert not AuditEvent.objects.exists()


def test_names_of_rounds_are_unique():
    reply = make_reply()
    make([reply])
    with pytest.raises(ValidationError, match="already exists"):
        make([reply])


def test_replies_that_do_not_belong_in_a_round_are_refused():
    here = make_reply()
    collection = here.conversation.collection
    for match, other in [
        ("one collection", make_reply()),
        ("no published rubric", make_reply(make_conversation(collection, criteria=0))),
        ("withdrawn", make_reply(make_conversation(collection, status="withdrawn"))),
    ]:
        with pytest.raises(ValidationError, match=match):
            make([here, other])
    assert not RoundItem.objects.exists()


def test_states_follow_each_other_in_one_direction():
    made = make([make_reply()])
    user = make_user()
    acts = {
        "open": services.open_round,
        "paused": services.pause_round,
        "closed": services.close_round,
    }
    allowed = {"draft": {"open"}, "open": {"paused", "closed"}, "paused": {"open", "closed"},
               "closed": set()}  # fmt: skip
    for before, ways in allowed.items():
        for after, act in acts.items():
            Round.objects.filter(pk=made.pk).update(status=before)
            if after in ways:
                assert act(round_id=made.pk, actor=user).status == after
                assert AuditEvent.objects.latest("id").action == f"round {after}"
            else:
                with pytest.raises(ValidationError, match=f"round is {before}"):
                    act(round_id=made.pk, actor=user)
                made.refresh_from_db()
                assert made.status == before


def test_the_first_opening_and_the_closing_are_dated():
    made = make([make_reply()])
    opened = services.open_round(round_id=made.pk, actor=None).opened_at
    services.pause_round(round_id=made.pk, actor=None)
    assert services.open_round(round_id=made.pk, actor=None).opened_at == opened
    closed = services.close_round(round_id=made.pk, actor=None)
    assert closed.closed_at >= opened


def test_raising_the_overlap_adds_places_and_lowering_takes_only_free_ones():
    ada, ben, cleo = (make_annotator() for _ in range(3))
    round_ = make_round([make_reply()], [ada, ben, cleo], overlap=1)
    claim(round_, ada)
    assert claim(round_, ben) is None
    set_overlap(round_, 3)
    assert claim(round_, ben) is not None
    set_overlap(round_, 1)
    assert (len(slots_of(round_)), held(round_)) == (2, 2)
    assert claim(round_, cleo) is None


def test_work_held_when_the_overlap_was_lowered_may_end_and_its_place_goes_with_it():
    ada, ben, cleo = (make_annotator() for _ in range(3))
    round_ = make_round([make_reply()], [ada, ben, cleo], overlap=2)
    first, second = claim(round_, ada), claim(round_, ben)
    set_overlap(round_, 1)
    services.skip_assignment(assignment_id=first.pk, annotator=ada)
    assert len(slots_of(round_)) == 1
    assert claim(round_, cleo) is None
    assert claim(round_, ada) is None
    services.skip_assignment(assignment_id=second.pk, annotator=ben)
    assert claim(round_, cleo) is not None
    assert (len(slots_of(round_)), held(round_)) == (1, 1)


def test_submitted_work_beyond_a_lowered_overlap_counts():
    ada, ben = make_annotator(), make_annotator()
    round_ = make_round([make_reply()], [ada, ben], overlap=2)
    for annotator in (ada, ben):
        label_item(round_.items.get(), annotator)
    set_overlap(round_, 1)
    assert Assignment.objects.filter(state="submitted").count() == 2
    work = Assignment.objects.get(annotator=ada)
    services.reopen_assignment(assignment_id=work.pk, annotator=ada)
    assert services.submit_assignment(assignment_id=work.pk, annotator=ada).state == "submitted"


def test_both_leases_out_after_lowering_leave_one_place():
    ada, ben, cleo = (make_annotator() for _ in range(3))
    round_ = make_round([make_reply()], [ada, ben, cleo], overlap=2)
    claim(round_, ada)
    claim(round_, ben)
    set_overlap(round_, 1)
    Assignment.objects.update(lease_until=timezone.now() - timedelta(minutes=1))
    assert claim(round_, cleo) is not None
    assert (len(slots_of(round_)), held(round_)) == (1, 1)


def test_numbers_of_places_are_used_again():
    round_ = make_round([make_reply()], overlap=10)
    for overlap in (1, 10, 3, 4):
        set_overlap(round_, overlap)
        assert slots_of(round_) == list(range(1, overlap + 1))


@pytest.mark.parametrize("overlap", [0, 11, -1, True, None, "2", 2.0])
def test_an_overlap_out_of_range_is_refused(overlap):
    round_ = make_round([make_reply()])
    with pytest.raises(ValidationError, match="1 to 10"):
        set_overlap(round_, overlap)
    assert slots_of(round_) == [1, 2]


def test_a_closed_round_changes_neither_overlap_nor_members():
    ada = make_annotator()
    round_ = make_round([make_reply()], [ada])
    services.close_round(round_id=round_.pk, actor=None)
    with pytest.raises(ValidationError, match="closed"):
        set_overlap(round_, 3)
    with pytest.raises(ValidationError, match="closed"):
        services.add_member(round_id=round_.pk, annotator=make_annotator(), actor=None)


def test_members_come_and_go_and_come_back():
    ada, actor = make_annotator(), make_user()
    round_ = make_round([make_reply()])
    changes = [(services.add_member, True), (services.add_member, True),
               (services.remove_member, False), (services.add_member, True)]  # fmt: skip
    for act, active in changes:
        act(round_id=round_.pk, annotator=ada, actor=actor)
        assert RoundMember.objects.get(round=round_, annotator=ada).active is active


def test_taking_out_somebody_who_is_not_in_it_leaves_no_trace():
    round_ = make_round([make_reply()])
    before = AuditEvent.objects.count()
    services.remove_member(round_id=round_.pk, annotator=make_annotator(), actor=None)
    assert AuditEvent.objects.count() == before


def test_taking_somebody_out_keeps_what_they_submitted():
    ada = make_annotator()
    round_ = make_round([make_reply()], [ada])
    done = label_item(round_.items.get(), ada)
    services.remove_member(round_id=round_.pk, annotator=ada, actor=None)
    done.refresh_from_db()
    assert done.state == "submitted"


@pytest.fixture
def both():
    return make_annotator(make_user(roles=["researcher", "clinician"], name="Robin Reed"))


def test_a_researcher_joins_practice_rounds_alone(both):
    reply = make_reply()
    with pytest.raises(ValidationError, match=r"Robin Reed.* needs a reason"):
        make([reply], [make_annotator(), both], override_reason="  ")
    assert not Round.objects.exists()
    practice = make([reply], [both], purpose="practice", name="Practice")
    assert practice.members.count() == 1
    assert not AuditEvent.objects.filter(action=services.people.OVERRIDE).exists()


def test_a_researcher_is_not_added_later_without_a_reason(both):
    round_ = make_round([make_reply()])
    with pytest.raises(ValidationError, match="Robin Reed"):
        services.add_member(round_id=round_.pk, annotator=both, actor=None)
    assert not round_.members.exists()


def test_an_override_lets_one_researcher_into_one_round_and_is_written_down(both):
    actor = make_user()
    made = make([make_reply()], [both], created_by=actor, override_reason=" Only two clinicians. ")
    event = AuditEvent.objects.get(action=services.people.OVERRIDE)
    assert (event.actor, event.target) == (actor, made.name)
    assert event.detail == {
        "round": made.pk,
        "annotator": both.pseudonym,
        "reason": "Only two clinicians.",
    }
    services.remove_member(round_id=made.pk, annotator=both, actor=actor)
    services.add_member(round_id=made.pk, annotator=both, actor=actor)
    assert AuditEvent.objects.filter(action=services.people.OVERRIDE).count() == 1
    elsewhere = make_round([make_reply()])
    with pytest.raises(ValidationError, match="needs a reason"):
        services.add_member(round_id=elsewhere.pk, annotator=both, actor=actor)


def test_admins_and_seniors_and_people_without_account_need_no_override():
    senior = make_annotator(make_user(roles=["senior clinician", "admin"]))
    make([make_reply()], [senior, make_annotator()])
    assert not AuditEvent.objects.filter(action=services.people.OVERRIDE).exists()

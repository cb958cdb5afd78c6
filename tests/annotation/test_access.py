"""Everybody reaches their own work, and what their role lets them read, and nothing else."""

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404

from annotation import access, services
from tests.factories import make_annotator, make_reply, make_round, make_user

pytestmark = pytest.mark.django_db
LABELLERS = ["clinician", "senior clinician"]
READERS = ["researcher", "admin"]
NEVER = [10**9, 10**30, 0, -1]


class Cast:
    def __init__(self, role="clinician"):
        self.alice = make_user(roles=[role])
        self.bob = make_user(roles=LABELLERS)
        self.stranger = make_user(roles=[*LABELLERS, *READERS])
        self.annotator = make_annotator(self.alice)
        self.other = make_annotator(self.bob)
        make_annotator(self.stranger)
        self.round = make_round([make_reply()], [self.annotator, self.other])
        self.work = services.claim_next(round_id=self.round.pk, annotator=self.annotator)


@pytest.mark.parametrize("role", LABELLERS)
def test_people_reach_their_own_work(role):
    cast = Cast(role)
    assert access.assignment_for(cast.alice, cast.work.pk) == cast.work
    assert access.round_for_labelling(cast.alice, cast.round.pk) == cast.round
    assert access.annotator_of(cast.alice) == cast.annotator


def test_work_comes_with_all_that_its_page_needs(django_assert_num_queries):
    cast = Cast()
    access.assignment_for(cast.alice, cast.work.pk)
    with django_assert_num_queries(1):
        found = access.assignment_for(cast.alice, cast.work.pk)
        assert found.round_item.reply.conversation.collection.slug
        assert found.round_item.round.name
        assert found.round_item.rubric.version
        assert found.annotator.pseudonym


def test_the_work_of_somebody_else_does_not_exist():
    cast = Cast()
    # Bob is in the same round; the stranger holds every role.
    for person in (cast.bob, cast.stranger):
        with pytest.raises(Http404):
            access.assignment_for(person, cast.work.pk)
    for pk in NEVER:
        with pytest.raises(Http404):
            access.assignment_for(cast.alice, pk)


def test_a_round_that_somebody_does_not_label_in_does_not_exist():
    cast = Cast()
    with pytest.raises(Http404):
        access.round_for_labelling(cast.stranger, cast.round.pk)
    for pk in NEVER:
        with pytest.raises(Http404):
            access.round_for_labelling(cast.alice, pk)


def test_a_draft_shows_itself_to_researchers_alone():
    user = make_user(roles=["clinician"])
    draft = make_round([make_reply()], [make_annotator(user)], status="draft")
    with pytest.raises(Http404):
        access.round_for_labelling(user, draft.pk)
    assert access.round_for_research(make_user(roles=["researcher"]), draft.pk) == draft


@pytest.mark.parametrize("act", [services.pause_round, services.close_round])
def test_a_round_that_pauses_or_closed_can_still_be_looked_at(act):
    cast = Cast()
    act(round_id=cast.round.pk, actor=None)
    assert access.round_for_labelling(cast.alice, cast.round.pk) == cast.round
    assert access.assignment_for(cast.alice, cast.work.pk) == cast.work


def test_somebody_taken_out_still_finds_a_round_they_worked_in_and_no_other():
    cast = Cast()
    for annotator in (cast.annotator, cast.other):
        services.remove_member(round_id=cast.round.pk, annotator=annotator, actor=None)
    assert access.round_for_labelling(cast.alice, cast.round.pk) == cast.round
    assert access.assignment_for(cast.alice, cast.work.pk) == cast.work
    with pytest.raises(Http404):
        access.round_for_labelling(cast.bob, cast.round.pk)


@pytest.mark.parametrize("roles", [[], READERS])
def test_labelling_needs_the_role_even_for_own_work(roles):
    cast = Cast()
    cast.alice.groups.set(make_user(roles=roles).groups.all())
    alice = type(cast.alice).objects.get(pk=cast.alice.pk)
    with pytest.raises(PermissionDenied, match="clinician"):
        access.assignment_for(alice, cast.work.pk)
    with pytest.raises(PermissionDenied, match="clinician"):
        access.round_for_labelling(alice, cast.round.pk)


def test_somebody_whose_account_is_closed_reaches_nothing():
    cast = Cast()
    cast.alice.is_active = False
    with pytest.raises(PermissionDenied):
        access.assignment_for(cast.alice, cast.work.pk)


@pytest.mark.parametrize("role", READERS)
def test_researchers_and_admins_read_all_rounds(role):
    cast = Cast()
    reader = make_user(roles=[role])
    draft = make_round(status="draft")
    assert set(access.rounds_visible_to(reader)) == {cast.round, draft}
    assert access.round_for_research(reader, cast.round.pk) == cast.round
    for pk in NEVER:
        with pytest.raises(Http404):
            access.round_for_research(reader, pk)


@pytest.mark.parametrize("roles", [[], LABELLERS])
def test_nobody_else_reads_rounds_as_a_whole(roles):
    cast = Cast()
    person = make_user(roles=roles)
    with pytest.raises(PermissionDenied, match="researcher"):
        access.round_for_research(person, cast.round.pk)
    with pytest.raises(PermissionDenied, match="researcher"):
        access.rounds_visible_to(person)


def test_somebody_without_an_annotator_has_none():
    assert access.annotator_of(make_user()) is None

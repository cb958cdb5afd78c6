"""Whatever the network does to the saves of several tabs, the labels are what the log gives."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation import services
from annotation.models import Assignment, Label, LabelEvent
from annotation.selectors import LabelState, replay, replay_labels, verify_assignments
from distressbench_site.accounts.guards import lifted
from tests.factories import make_annotator, make_conversation, make_reply, make_round

CRITERIA = 3
answers = st.one_of(
    st.tuples(st.sampled_from(["met", "not_met"]), st.just(""), st.sampled_from(["", "A 🌱.\n"])),
    st.tuples(st.just("cannot_tell"), st.sampled_from(["", "not_applicable"]), st.just("")),
    st.tuples(st.none(), st.just(""), st.sampled_from(["", "Taken back."])),
)


@st.composite
def deliveries(draw, clients="abc"):
    """Return what reaches the server: the numbered clicks of each tab, late, twice or never."""
    sent = [
        (client, seq, draw(st.integers(0, CRITERIA - 1)), *draw(answers))
        for client in clients
        for seq in range(1, draw(st.integers(0, 5)) + 1)
    ]
    arrived = [event for event in sent for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2])))]
    return draw(st.permutations(arrived))


def slow_model(arrived):
    """Return the answers by criterion, each as the last arrival that nothing had overtaken.

    An arrival is overtaken when its own client's later click on the same criterion came before it.
    """
    first = list(dict.fromkeys(arrived))
    found = {}
    for criterion in range(CRITERIA):
        here = [event for event in first if event[2] == criterion]
        standing = [
            event
            for place, event in enumerate(here)
            if all(e[0] != event[0] or e[1] < event[1] for e in here[:place])
        ]
        if standing:
            found[criterion] = standing[-1][3:]
    return found


@pytest.fixture
def work():
    ada = make_annotator()
    conversation = make_conversation(criteria=CRITERIA)
    round_ = make_round([make_reply(conversation)], [ada])
    return services.claim_next(round_id=round_.pk, annotator=ada)


def asked(work):
    return list(work.round_item.asked.values_list("criterion_id", flat=True))


def save(work, client, seq, place, value="met", reason="", comment=""):
    return services.save_label(
        assignment_id=work.pk,
        annotator=work.annotator,
        criterion_id=asked(work)[place],
        client=client,
        seq=seq,
        value=value,
        reason=reason,
        comment=comment,
    )


def stored(work):
    criteria = asked(work)
    return {
        criteria.index(label.criterion_id): (label.value, label.reason, label.comment)
        for label in Label.objects.filter(assignment=work)
    }


def replayed(work):
    criteria = asked(work)
    return {
        criteria.index(criterion): (state.value, state.reason, state.comment)
        for criterion, state in replay_labels(work.pk).items()
    }


anything = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.django_db
@anything
@given(arrived=deliveries())
def test_labels_are_the_replay_and_what_a_slow_model_says(work, arrived):
    with transaction.atomic():
        seen = set()
        for event in arrived:
            before, events = stored(work), LabelEvent.objects.count()
            result = save(work, *event)
            if event in seen:
                assert (result.applied, stored(work)) == (False, before)
                assert LabelEvent.objects.count() == events
            seen.add(event)
            shown = result.label and (result.label.value, result.label.reason)
            assert shown == stored(work)[event[2]][:2]
        assert LabelEvent.objects.filter(assignment=work).count() == len(seen)
        assert stored(work) == replayed(work) == slow_model(arrived)
        assert list(verify_assignments(Assignment.objects.all())) == []
        transaction.set_rollback(True)


@pytest.mark.django_db
@anything
@given(arrived=deliveries(clients="a"))
def test_of_one_tab_the_last_click_wins_in_whatever_order_they_arrive(work, arrived):
    with transaction.atomic():
        for event in arrived:
            save(work, *event)
        last = {}
        for event in sorted(set(arrived), key=lambda event: event[1]):
            last[event[2]] = event[3:]
        assert stored(work) == last
        transaction.set_rollback(True)


@pytest.mark.django_db
@anything
@given(arrived=deliveries())
def test_sending_everything_again_changes_nothing(work, arrived):
    with transaction.atomic():
        for event in arrived:
            save(work, *event)
        before = stored(work)
        for event in reversed(arrived):
            assert not save(work, *event).applied
        assert stored(work) == before
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_a_late_click_of_the_same_tab_is_logged_and_does_not_win(work):
    assert save(work, "a", 5, 0, "met").applied
    late = save(work, "a", 4, 0, "not_met")
    assert (late.applied, late.label.value) == (False, "met")
    assert LabelEvent.objects.count() == 2


@pytest.mark.django_db
def test_a_late_click_on_another_criterion_counts(work):
    save(work, "a", 5, 0, "met")
    assert save(work, "a", 4, 1, "not_met").applied


@pytest.mark.django_db
def test_between_tabs_the_server_decides_whatever_their_numbers(work):
    save(work, "a", 900, 0, "met")
    assert save(work, "b", 1, 0, "not_met").applied
    assert stored(work)[0][0] == "not_met"
    assert save(work, "a", 901, 0, "cannot_tell", "not_applicable").applied
    assert stored(work)[0] == ("cannot_tell", "not_applicable", "")


@pytest.mark.django_db
def test_a_refused_save_leaves_no_event(work):
    with pytest.raises(ValidationError):
        save(work, "a", 1, 0, "perhaps")
    assert not LabelEvent.objects.exists()


def event(client, seq, value, criterion=1, quotes=()):
    return SimpleNamespace(
        criterion_id=criterion, client=client, seq=seq, value=value, reason="", quotes=quotes
    )


@pytest.mark.no_database
def test_replay_gives_the_whole_answer_with_comment_and_quotes():
    quotes = [{"turn": 0, "start": 2, "text": "am"}]
    log = [(event("a", 1, "met"), "old"), (event("a", 2, "not_met", quotes=quotes), "new")]
    assert replay(log) == {1: LabelState("not_met", "", "new", ((0, 2, "am"),))}
    assert replay([]) == {}


@pytest.mark.no_database
def test_replay_reads_a_number_that_came_twice_once():
    log = [(event("a", 1, "met"), ""), (event("a", 1, "not_met"), "")]
    assert replay(log)[1].value == "met"


@pytest.mark.django_db
def test_a_difference_that_a_save_in_between_explains_is_no_fault(work, monkeypatch):
    module = import_module("annotation.selectors.replay")
    save(work, "a", 1, 0)
    read = module._events

    def read_and_then_save(assignment_id):
        found = list(read(assignment_id))
        monkeypatch.setattr(module, "_events", read)
        save(work, "a", 2, 0, "not_met")
        return found

    monkeypatch.setattr(module, "_events", read_and_then_save)
    assert list(verify_assignments(Assignment.objects.all())) == []


@pytest.mark.django_db
def test_each_planted_difference_is_found(work):
    save(work, "a", 1, 0, "met", comment="Sound.")
    save(work, "a", 2, 1, "met")
    criteria = asked(work)
    with lifted():
        Label.objects.filter(criterion=criteria[0]).update(comment="Changed.")
        Label.objects.filter(criterion=criteria[1]).update(value="not_met", quotes=["odd"])
        Label.objects.create(assignment=work, criterion_id=criteria[2], value="met")
    found = {
        fault["criterion"]: fault["fault"] for fault in verify_assignments(Assignment.objects.all())
    }
    assert found == {
        criteria[0]: "the label is not what its log gives: comment",
        criteria[1]: "the label is not what its log gives: value, quotes",
        criteria[2]: "the label has no event in the log",
    }

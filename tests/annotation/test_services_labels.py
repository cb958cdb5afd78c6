"""Answers are kept exactly as they came, or refused with a reason; nothing lies in between."""

import hashlib
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from annotation import services
from annotation.models import (
    Annotator,
    Assignment,
    AssignmentEvent,
    Label,
    LabelEvent,
    LabelEventText,
)
from annotation.services.labels import MAX_COMMENT, MAX_QUOTES, MAX_SEQ
from tests.factories import (
    label_item,
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_round,
)

pytestmark = pytest.mark.django_db
TEXT = "I am glad you wrote. 🌱 Stay near someone tonight."


@pytest.fixture
def ada():
    return make_annotator()


@pytest.fixture
def ben():
    return make_annotator()


@pytest.fixture
def round_(ada, ben):
    collection = make_collection()
    reply = make_reply(make_conversation(collection, criteria=2), turns=[TEXT])
    return make_round([reply], [ada, ben], overlap=1)


@pytest.fixture
def work(round_, ada):
    return services.claim_next(round_id=round_.pk, annotator=ada)


def asked(assignment, place=0):
    return assignment.round_item.asked.all()[place].criterion_id


def save(assignment, seq=1, value="met", *, place=0, annotator=None, **extra):
    return services.save_label(
        **{
            "assignment_id": assignment.pk,
            "annotator": annotator or assignment.annotator,
            "criterion_id": asked(assignment, place),
            "client": "tab",
            "seq": seq,
            "value": value,
            **extra,
        }
    )


def submit(assignment):
    return services.submit_assignment(assignment_id=assignment.pk, annotator=assignment.annotator)


def fill(assignment):
    for place in range(2):
        save(assignment, place + 1, place=place)


def lapse(assignment):
    """Let the lease run out and somebody else's claim find that."""
    past = timezone.now() - timedelta(seconds=1)
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=past)


def everything():
    """Return all that a refused act must leave as it was."""
    tables = (Assignment, AssignmentEvent, Label, LabelEvent, LabelEventText)
    return [list(table.objects.order_by("pk").values()) for table in tables]


def refused(match, act, *arguments, **named):
    before = everything()
    with pytest.raises(ValidationError, match=match):
        act(*arguments, **named)
    assert everything() == before


def test_an_answer_is_kept_with_its_quote_and_comment_and_its_log(work):
    quotes = [{"turn": 0, "start": 21, "text": "🌱 Stay"}]
    said = "Zeile eins\nשלום 🙂 "
    result = save(work, 7, "cannot_tell", reason="criterion_unclear", comment=said, quotes=quotes)
    assert result.applied
    label = Label.objects.get()
    assert result.label == label
    assert (label.value, label.reason, label.comment) == ("cannot_tell", "criterion_unclear", said)
    assert label.quotes == quotes
    event = LabelEvent.objects.get()
    assert (event.client, event.seq, event.value, event.quotes) == ("tab", 7, "cannot_tell", quotes)
    # The words stand beside the log, which holds their digest alone.
    assert event.comment_digest == hashlib.sha256(said.encode()).hexdigest()
    assert event.text.comment == said


def test_without_a_comment_there_is_no_text_and_no_digest(work):
    save(work)
    assert LabelEvent.objects.get().comment_digest == ""
    assert not LabelEventText.objects.exists()


def test_an_answer_can_be_taken_back_to_open(work):
    save(work, 1, "cannot_tell", reason="reply_ambiguous")
    save(work, 2, None)
    label = Label.objects.get()
    assert (label.value, label.reason) == (None, "")


def quote(**changes):
    return {"turn": 0, "start": 0, "text": "I am", **changes}


BAD = {
    "an unknown criterion": ("not asked", {"criterion_id": 10**9}),
    "a criterion beyond any number": ("not asked", {"criterion_id": 10**30}),
    "an unknown value": ("met, not met or cannot tell", {"value": "maybe"}),
    "a boolean value": ("met, not met or cannot tell", {"value": True}),
    "an empty value": ("met, not met or cannot tell", {"value": ""}),
    "a list as value": ("met, not met or cannot tell", {"value": ["met"]}),
    "a reason beside met": ("belongs to the answer", {"reason": "reply_ambiguous"}),
    "a reason without answer": (
        "belongs to the answer",
        {"value": None, "reason": "reply_ambiguous"},
    ),
    "an unknown reason": ("belongs to the answer", {"value": "cannot_tell", "reason": "tired"}),
    "no reason but null": ("belongs to the answer", {"reason": None}),
    "NUL in the comment": ("cannot be stored", {"comment": "a\x00b"}),
    "a lone surrogate in the comment": ("cannot be stored", {"comment": "a\ud83d"}),
    "a comment too long": ("at most 10,000", {"comment": "x" * (MAX_COMMENT + 1)}),
    "a comment of no text": ("is a text", {"comment": None}),
    "NUL in the client": ("cannot be stored", {"client": "\x00"}),
    "a lone surrogate in the client": ("cannot be stored", {"client": "\udc00"}),
    "an empty client": ("not numbered", {"client": ""}),
    "a client too long": ("at most 64", {"client": "c" * 65}),
    "a client that is a number": ("is a text", {"client": 5}),
    "a negative number": ("not numbered", {"seq": -1}),
    "a number too large": ("not numbered", {"seq": MAX_SEQ + 1}),
    "a fractional number": ("not numbered", {"seq": 1.5}),
    "a number as text": ("not numbered", {"seq": "1"}),
    "true as number": ("not numbered", {"seq": True}),
    "a quote that is not there": ("differs", {"quotes": [quote(text="I was")]}),
    "a quote elsewhere": ("differs", {"quotes": [quote(start=1)]}),
    "a quote past the end": ("differs", {"quotes": [quote(start=10**20)]}),
    "a quote before the start": ("outside", {"quotes": [quote(start=-4)]}),
    "a quote of another turn": ("outside", {"quotes": [quote(turn=1)]}),
    "a quote of a turn counted from the end": ("outside", {"quotes": [quote(turn=-1)]}),
    "an empty quote": ("needs turn", {"quotes": [quote(text="")]}),
    "a quote with a true turn": ("needs turn", {"quotes": [quote(turn=False)]}),
    "a quote without place": ("needs turn", {"quotes": [{"text": "I am"}]}),
    "a quote that is a text": ("needs turn", {"quotes": ["I am"]}),
    "quotes that are a text": ("Quotes are a list", {"quotes": "I am"}),
    "too many quotes": ("Quotes are a list", {"quotes": [quote()] * (MAX_QUOTES + 1)}),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(case, work):
    save(work, 3, "not_met", comment="Before.", client="earlier")
    match, changes = BAD[case]
    refused(match, save, work, **changes)


def test_the_longest_that_is_allowed_is_kept_whole(work):
    said = "🙂" * MAX_COMMENT
    save(work, MAX_SEQ, client="c" * 64, comment=said, quotes=[quote(text=TEXT)] * MAX_QUOTES)
    label = Label.objects.get()
    assert label.comment == said
    assert len(label.quotes) == MAX_QUOTES


def test_only_the_holder_saves_submits_and_opens_again(work, ben):
    refused("not assigned to you", save, work, annotator=ben)
    for act in (
        services.submit_assignment,
        services.reopen_assignment,
        services.skip_assignment,
        services.decline_assignment,
        services.renew_lease,
    ):
        refused("not assigned to you", act, assignment_id=work.pk, annotator=ben)
        refused("not assigned to you", act, assignment_id=10**9, annotator=work.annotator)


def test_submitted_answers_are_closed_until_they_are_opened_again(work, ada):
    fill(work)
    submit(work)
    refused("Open it again", save, work, 9, "not_met")
    services.reopen_assignment(assignment_id=work.pk, annotator=ada)
    work.refresh_from_db()
    assert (work.state, work.submitted_at) == ("active", None)
    assert save(work, 9, "not_met").applied
    assert submit(work).state == "submitted"
    assert list(work.events.values_list("kind", flat=True)) == [
        "claimed",
        "submitted",
        "reopened",
        "submitted",
    ]


def test_a_repeated_save_of_what_is_submitted_still_answers_the_same(work):
    save(work, 1, "met", comment="Kept.")
    save(work, 2, place=1)
    submit(work)
    again = save(work, 1, "met", comment="Kept.")
    assert (again.label.comment, again.applied) == ("Kept.", False)


@pytest.mark.parametrize(
    "change", [{"place": 1}, {"value": "not_met"}, {"comment": "Other words."}]
)
def test_a_number_that_comes_again_with_another_answer_is_not_shown_as_saved(work, change):
    save(work, 1)
    refused("used for another answer", save, work, 1, **change)


def test_declined_work_takes_no_more_answers(work, ada):
    services.decline_assignment(assignment_id=work.pk, annotator=ada)
    refused("declined", save, work)
    refused("declined", submit, work)


def test_a_closed_round_takes_no_more_answers(round_, work):
    fill(work)
    services.close_round(round_id=round_.pk, actor=None)
    refused("closed", save, work, 3, "not_met")
    refused("closed", submit, work)


def test_a_paused_round_lets_people_finish(round_, work):
    services.pause_round(round_id=round_.pk, actor=None)
    fill(work)
    assert submit(work).state == "submitted"
    refused("while its round is open", services.reopen_assignment,
            assignment_id=work.pk, annotator=work.annotator)  # fmt: skip


def test_unfinished_work_is_not_submitted_and_says_what_is_open(work):
    save(work, 1, "cannot_tell")
    with pytest.raises(ValidationError) as refusal:
        submit(work)
    first, second = work.round_item.asked.select_related("criterion")
    assert refusal.value.messages == [
        f"Still open: {first.criterion.text} (why can you not tell?)",
        f"Still open: {second.criterion.text}",
    ]
    refused("Still open", submit, work)


def test_submitting_twice_is_submitting_once(work):
    fill(work)
    first = submit(work)
    before = everything()
    assert submit(work).submitted_at == first.submitted_at
    assert everything() == before


def test_saving_holds_the_slot_for_longer(work, settings):
    untouched = work.lease_until
    save(work)
    work.refresh_from_db()
    assert work.started_at is not None
    hours = settings.LEASE_HOURS_STARTED
    assert work.lease_until - work.started_at == timedelta(hours=hours)
    assert work.lease_until > untouched


def test_late_answers_take_the_slot_again_where_it_is_free(work, round_):
    lapse(work)
    other = make_annotator()
    services.add_member(round_id=round_.pk, annotator=other, actor=None)
    taken = services.claim_next(round_id=round_.pk, annotator=other)
    services.skip_assignment(assignment_id=taken.pk, annotator=other)
    assert save(work).assignment.state == "active"


def test_late_answers_are_kept_where_the_slot_is_gone_and_can_still_be_finished(work, round_, ben):
    save(work, 1, "met", comment="A long thought.")
    lapse(work)
    taken = services.claim_next(round_id=round_.pk, annotator=ben)
    assert taken is not None
    late = save(work, 2, "not_met", place=1, comment="Late, and kept.")
    assert (late.applied, late.assignment.state) == (True, "lapsed")
    assert submit(work).state == "surplus"
    assert sorted(Label.objects.filter(assignment=work).values_list("comment", flat=True)) == [
        "A long thought.",
        "Late, and kept.",
    ]
    refused("submitted already", save, work, 5, "met")
    before = everything()
    assert submit(work).state == "surplus"
    assert everything() == before


def test_late_work_counts_when_its_slot_came_free_meanwhile(work, round_, ben):
    fill(work)
    lapse(work)
    taken = services.claim_next(round_id=round_.pk, annotator=ben)
    assert save(work, 5, "not_met").assignment.state == "lapsed"
    services.decline_assignment(assignment_id=taken.pk, annotator=ben)
    assert submit(work).state == "submitted"


def test_a_lease_that_ran_out_unnoticed_is_no_obstacle(work):
    fill(work)
    lapse(work)
    assert submit(work).state == "submitted"


def test_somebody_taken_out_of_a_round_keeps_the_answers_and_submits_nothing(work, round_, ada):
    fill(work)
    services.remove_member(round_id=round_.pk, annotator=ada, actor=None)
    late = save(work, 9, "not_met")
    assert (late.applied, late.assignment.state) == (True, "lapsed")
    refused("any more", submit, work)
    renewed = services.renew_lease(assignment_id=work.pk, annotator=ada)
    assert renewed.state == "lapsed"
    services.add_member(round_id=round_.pk, annotator=ada, actor=None)
    assert submit(work).state == "submitted"


def test_somebody_taken_out_of_a_round_cannot_open_what_could_not_be_submitted(round_, ada):
    done = label_item(round_.items.get(), ada)
    services.remove_member(round_id=round_.pk, annotator=ada, actor=None)
    refused("any more", services.reopen_assignment, assignment_id=done.pk, annotator=ada)


def test_an_account_has_one_annotator_whose_name_tells_nothing(django_user_model):
    person = django_user_model.objects.create_user("ada.archer@example.org", name="Ada Archer")
    made = services.annotator_for(user=person)
    assert services.annotator_for(user=person) == made
    assert Annotator.objects.filter(user=person).count() == 1
    assert not {"ada", "archer"} & set(made.pseudonym.lower().split("-"))

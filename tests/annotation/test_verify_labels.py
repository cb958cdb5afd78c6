"""`manage.py verify_labels` names each label that differs from its log, and fails then alone."""

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotation import services
from annotation.models import Assignment, Label, LabelEvent, LabelEventText
from distressbench_site.accounts.guards import lifted
from tests.factories import make_annotator, make_conversation, make_reply, make_round

pytestmark = pytest.mark.django_db


def labelled(name):
    """Make a round with one reply of two criteria that somebody answered, with comments."""
    ada = make_annotator()
    reply = make_reply(make_conversation(criteria=2), turns=["I am glad you wrote."])
    round_ = make_round([reply], [ada], name=name)
    work = services.claim_next(round_id=round_.pk, annotator=ada)
    for seq, asked in enumerate(work.round_item.asked.all(), start=1):
        for attempt in (0, 10):
            services.save_label(
                assignment_id=work.pk,
                annotator=ada,
                criterion_id=asked.criterion_id,
                client="tab",
                seq=seq + attempt,
                value="met",
                comment=f"Comment {seq + attempt}.",
                quotes=[{"turn": 0, "start": 0, "text": "I am"}],
            )
    return services.submit_assignment(assignment_id=work.pk, annotator=ada)


def run(*arguments):
    """Return what the command printed and what it failed with, if it did."""
    printed = io.StringIO()
    try:
        call_command("verify_labels", *arguments, stdout=printed)
    except CommandError as error:
        return printed.getvalue(), error
    return printed.getvalue(), None


@pytest.fixture
def work():
    return labelled("Spring")


def label_of(work, place=0):
    return work.labels.order_by("criterion_id")[place]


def change_value(work):
    Label.objects.filter(pk=label_of(work).pk).update(value="not_met")
    return "value"


def change_reason(work):
    Label.objects.filter(pk=label_of(work).pk).update(value="cannot_tell", reason="not_applicable")
    return "value, reason"


def change_comment(work):
    Label.objects.filter(pk=label_of(work).pk).update(comment="Rewritten.")
    return "comment"


def change_quotes(work):
    Label.objects.filter(pk=label_of(work).pk).update(quotes=[])
    return "quotes"


def spoil_quotes(work):
    Label.objects.filter(pk=label_of(work).pk).update(quotes={"text": "odd"})
    return "quotes"


def lose_label(work):
    label_of(work).delete()
    return "there is none"


def lose_events(work):
    gone = LabelEvent.objects.filter(assignment=work, criterion=label_of(work).criterion)
    LabelEventText.objects.filter(event__in=gone).delete()
    gone.delete()
    return "no event"


def lose_the_last_event(work):
    last = LabelEvent.objects.filter(criterion=label_of(work).criterion).latest("id")
    last.text.delete()
    last.delete()
    return "comment"


def rewrite_a_comment_of_the_log(work):
    first = LabelEvent.objects.filter(criterion=label_of(work).criterion).earliest("id")
    LabelEventText.objects.filter(event=first).update(comment="Rewritten.")
    return "digest"


def lose_a_comment_of_the_log(work):
    first = LabelEvent.objects.filter(criterion=label_of(work).criterion).earliest("id")
    first.text.delete()
    return "digest"


PLANTED = [
    change_value,
    change_reason,
    change_comment,
    change_quotes,
    spoil_quotes,
    lose_label,
    lose_events,
    lose_the_last_event,
    rewrite_a_comment_of_the_log,
    lose_a_comment_of_the_log,
]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_difference_is_named_and_fails(work, plant):
    criterion = label_of(work).criterion_id
    labelled("Sound")
    with lifted():
        words = plant(work)
    printed, error = run("--json")
    assert str(error) == "1 label differs from its log."
    assert error.returncode == 1
    report = json.loads(printed)
    assert report["assignments"] == 2
    [fault] = report["faults"]
    assert (fault["assignment"], fault["criterion"]) == (work.pk, criterion)
    assert words in fault["fault"]


def test_the_table_names_assignment_and_criterion_and_no_comment(work):
    with lifted():
        change_comment(work)
        change_value(work)
    printed, error = run()
    assert error is not None
    assert str(work.pk) in printed
    assert str(label_of(work).criterion_id) in printed
    assert "Rewritten" not in printed
    assert "Comment" not in printed


def test_every_difference_is_counted(work):
    with lifted():
        Label.objects.filter(assignment=work).update(value="not_met")
        change_value(labelled("Summer"))
    _, error = run()
    assert "3 labels" in str(error)


def test_sound_labels_pass(work):
    printed, error = run()
    assert error is None
    assert printed.strip() == "1 assignments: every label is what its log gives."
    printed, error = run("--json")
    assert error is None
    assert json.loads(printed) == {"assignments": 1, "faults": []}


def test_an_audited_redaction_is_sound(work):
    label = label_of(work)
    last = LabelEvent.objects.filter(criterion=label.criterion).latest("id")
    LabelEventText.objects.filter(event=last).update(comment="", redacted_at=timezone.now())
    assert run()[1] is not None
    Label.objects.filter(pk=label.pk).update(comment="")
    assert run()[1] is None


def test_one_round_alone_can_be_checked(work):
    labelled("Summer")
    with lifted():
        change_value(work)
    assert run("--round", "Summer")[1] is None
    assert run("--round", "Spring")[1] is not None
    assert "no round named 'Autumn'" in str(run("--round", "Autumn")[1])


def test_nothing_at_all_is_sound():
    assert not Assignment.objects.exists()
    assert run()[1] is None


def test_checking_many_takes_a_few_queries_each(django_assert_max_num_queries):
    for n in range(6):
        labelled(f"Round {n}")
    with django_assert_max_num_queries(2 + 6 * 2):
        assert run()[1] is None

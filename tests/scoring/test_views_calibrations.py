"""Calibrations: made with a reason, read in plain words, decided with a reason."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Round
from scoring import services
from scoring.models import Calibration, CalibrationDecision, SplitMember, SplitOpening, Verdict
from tests.factories import (
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_round,
    make_rubric,
    make_user,
)
from tests.scoring.making import label_round, make_calibration, make_judge, make_judged_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def researcher():
    return make_user(roles=["researcher"], name="Ada Lindqvist")


@pytest.fixture
def client(researcher) -> Client:
    client = Client()
    client.force_login(researcher)
    return client


@pytest.fixture
def calibration():
    judge = make_judge()
    return make_calibration(judge, make_judged_collection(judge))


def detail(calibration):
    return reverse("calibration-detail", args=[calibration.pk])


def decide(client, calibration, **sent):
    return client.post(reverse("calibration-decide", args=[calibration.pk]), sent)


def test_the_report_says_it_in_plain_words(client, calibration):
    text = client.get(detail(calibration)).content.decode()
    assert "Can this judge stand in for the clinicians?" in text
    # 30 of 40 and 36 of 40, as the maker says.
    assert "Of the criteria that clinicians found met, the judge says met in 75\u00a0%." in text
    assert (
        "Of the criteria that clinicians found not met, the judge says not met in 90\u00a0%."
        in text
    )
    # Met and not met are 40 each, so a constant answer is right in half.
    assert "would reach 50\u00a0%" in text
    assert "a baseline" in text


def test_the_judge_stands_beside_each_clinician(client, calibration):
    response = client.get(detail(calibration))
    rows = response.context["standing"]
    assert rows[0].is_judge
    assert {row.name for row in rows[1:]} == {"annotator-1", "annotator-2", "annotator-3"}
    values = [float(row.macro_f1.text) for row in rows[1:]]
    assert values == sorted(values, reverse=True)
    # The judge is under all three clinicians.
    assert "place 4 of 4" in response.content.decode()


def test_a_dimension_with_one_answer_is_undefined_with_a_reason(client, calibration):
    response = client.get(detail(calibration))
    rows = {row.name: row for row in response.context["dimensions"]}
    shown = rows["Harmless response"].specificity
    assert (shown.text, shown.reason) == ("", "clinicians found nothing not met")
    assert "undefined: clinicians found nothing not met" in response.content.decode()
    # Of all 80 units the judge says met in 34: 30 of the 40 met ones, 4 of the others.
    assert rows["Harmless response"].counts == {"tp": 34, "fp": 0, "fn": 46, "tn": 0}


def test_the_opening_and_the_digests_are_printed(client, calibration):
    text = client.get(detail(calibration)).content.decode()
    for expected in ("At least 0.80.", "Time to know.", calibration.digest[:12]):
        assert expected in text


def test_a_stale_calibration_says_why(client):
    judge = make_judge()
    calibration = make_calibration(judge, make_judged_collection(judge), labels_digest="0" * 64)
    text = client.get(detail(calibration)).content.decode()
    assert "<strong>Stale.</strong> Labels have changed since." in text
    make_rubric(calibration.split.collection.conversations.first(), ["Other words."])
    text = client.get(detail(calibration)).content.decode()
    assert "Labels have changed since. Criteria have changed since." in text


def test_a_decision_is_kept_with_its_reason(client, researcher, calibration):
    response = decide(client, calibration, decision="approve", reason="Good enough for a demo.")
    assert response["Location"] == detail(calibration)
    made = CalibrationDecision.objects.get()
    assert (made.decision, made.decided_by) == ("approve", researcher)
    decide(client, calibration, decision="reject", reason="On second thoughts, no.")
    text = client.get(detail(calibration)).content.decode()
    # Both stay, the newest first.
    assert text.index("On second thoughts, no.") < text.index("Good enough for a demo.")
    assert '<span class="tag error">rejected</span>' in text


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"decision": "approve"}, "Give the reason"),
        ({"decision": "approve", "reason": "   "}, "Give the reason"),
        ({"reason": "Because."}, "Choose to approve or to reject."),
        ({"decision": "supersede", "reason": "Because."}, "Select a valid choice"),
        ({"decision": "approve", "reason": "x" * 2001}, "at most 2000"),
    ],
)
def test_an_incomplete_decision_is_refused(client, calibration, sent, words):
    response = decide(client, calibration, **sent)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not CalibrationDecision.objects.exists()


def test_a_stale_calibration_is_not_approved(client):
    judge = make_judge()
    calibration = make_calibration(judge, make_judged_collection(judge), labels_digest="0" * 64)
    response = decide(client, calibration, decision="approve", reason="Never mind.")
    assert response.status_code == 422
    assert "cannot be approved" in response.content.decode()
    assert not CalibrationDecision.objects.exists()


def test_a_judge_is_calibrated_on_test_labels(client, researcher):
    collection = make_collection()
    replies = [make_reply(make_conversation(collection, criteria=2)) for _ in range(12)]
    people = [make_annotator(), make_annotator()]
    opened = make_round(replies, people, overlap=2)
    for annotator in people:
        label_round(opened, annotator)
    judge = make_judge()
    for reply in replies:
        for criterion in reply.conversation.criteria.all():
            Verdict.objects.create(judge=judge, reply=reply, criterion=criterion, met=True)
    url = reverse("calibration-create", args=[judge.pk])
    sent = {"rounds": [opened.pk], "targets": "At least 0.80.", "reason": "Before the board."}
    response = client.post(url, sent)
    made = Calibration.objects.get()
    assert response["Location"] == detail(made)
    opening = SplitOpening.objects.get()
    assert (opening.targets, opening.reason) == ({"text": "At least 0.80."}, "Before the board.")
    assert opening.opened_by == researcher
    n_test = SplitMember.objects.filter(part="test").count()
    page = client.get(detail(made))
    # Two criteria in each test conversation, each agreed by two people.
    assert page.context["overall"]["n_units"] == 2 * n_test
    # A judge that always says met finds all that is met and nothing that is not.
    assert page.context["sensitivity"].text == "100\u00a0%"
    assert page.context["specificity"].text == "0\u00a0%"


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        ("rounds", "Choose at least one round."),
        ("targets", "This field is required."),
        ("reason", "This field is required."),
    ],
)
def test_an_incomplete_request_opens_nothing(client, left_out, words):
    judge = make_judge()
    opened = Round.objects.create(collection=make_collection(), name="Round", status="open")
    sent = {"rounds": [opened.pk], "targets": "At least 0.80.", "reason": "Now."}
    del sent[left_out]
    response = client.post(reverse("calibration-create", args=[judge.pk]), sent)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not SplitOpening.objects.exists()


def test_without_labels_nothing_is_measured_or_opened(client):
    judge = make_judge()
    collection = make_judged_collection(judge)
    opened = Round.objects.create(collection=collection, name="Round", status="open")
    sent = {"rounds": [opened.pk], "targets": "At least 0.80.", "reason": "Now."}
    response = client.post(reverse("calibration-create", args=[judge.pk]), sent)
    assert response.status_code == 422
    assert "agreed labels" in response.content.decode()
    assert not SplitOpening.objects.exists()


def test_queries_do_not_grow_with_decisions(client, calibration):
    def count():
        with CaptureQueriesContext(connection) as found:
            assert client.get(detail(calibration)).status_code == 200
        return len(found)

    def add(number):
        for _ in range(number):
            services.decide_calibration(
                calibration=calibration, decision="reject", reason="No.", actor=make_user()
            )

    add(10)
    before = count()
    add(10)
    assert count() == before

"""Judges: listed, trained, looked at."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Round
from scoring import services
from scoring.models import Judge
from tests.factories import (
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_round,
    make_user,
)
from tests.scoring.making import (
    label_round,
    make_calibration,
    make_judge,
    make_judged_collection,
    make_run,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(make_user(roles=["researcher"]))
    return client


def labelled_round():
    """Make a round whose nine replies one annotator has labelled; a third of them are dev."""
    collection = make_collection()
    texts = ["I hear you and I am here.", "Please ask somebody else.", "Call 988 tonight."] * 3
    replies = [
        make_reply(make_conversation(collection, criteria=2), turns=[text]) for text in texts
    ]
    annotator = make_annotator()
    opened = make_round(replies, [annotator], overlap=1)
    label_round(opened, annotator)
    return collection, opened


def test_the_list_names_a_baseline_a_baseline(client):
    judge = make_judge(name="words")
    make_judged_collection(judge, conversations=1)
    make_run(judge, make_judged_collection(judge, conversations=1))
    text = client.get(reverse("judge-list")).content.decode()
    assert "words v1" in text
    assert '<span class="tag">baseline</span>' in text
    row = client.get(reverse("judge-list")).context["rows"][0]
    # Two collections of one conversation with three judged replies and three criteria each.
    assert (row.verdicts, row.runs, row.calibrations) == (18, 1, 0)


def test_without_a_judge_the_list_leads_to_training(client):
    text = client.get(reverse("judge-list")).content.decode()
    assert "No judge yet" in text
    assert reverse("baseline-train") in text


def test_a_baseline_is_trained_on_chosen_rounds(client):
    collection, opened = labelled_round()
    sent = {"collection": collection.pk, "rounds": [opened.pk]}
    response = client.post(reverse("baseline-train"), sent)
    assert response.status_code == 302, response.context["form"].errors
    judge = Judge.objects.get()
    assert response["Location"] == reverse("judge-detail", args=[judge.pk])
    text = client.get(response["Location"]).content.decode()
    assert opened.name in text
    assert judge.digest in text
    assert "A baseline:" in text
    # The same training is the same judge.
    assert client.post(reverse("baseline-train"), sent)["Location"] == response["Location"]
    assert Judge.objects.count() == 1


def test_what_cannot_train_is_said_in_plain_words(client):
    collection, _ = labelled_round()
    elsewhere = Round.objects.create(collection=make_collection(), name="Elsewhere", status="open")
    unlabelled = Round.objects.create(collection=collection, name="Unlabelled", status="open")
    for rounds, words in (
        ([], "Choose at least one round."),
        ([elsewhere.pk], "Elsewhere."),
        ([unlabelled.pk], "Only labels of the dev part"),
        ([10**9], "Select a valid choice"),
    ):
        response = client.post(
            reverse("baseline-train"), {"collection": collection.pk, "rounds": rounds}
        )
        assert response.status_code == 422
        assert words in response.content.decode()
    assert not Judge.objects.exists()


def test_practice_and_drafts_are_not_offered(client):
    collection = make_collection()
    for name, purpose, status in (
        ("A practice", "practice", "open"),
        ("A draft", "calibration", "draft"),
        ("A real one", "calibration", "closed"),
    ):
        Round.objects.create(collection=collection, name=name, purpose=purpose, status=status)
    text = client.get(reverse("baseline-train")).content.decode()
    assert "A real one" in text
    assert "A practice" not in text
    assert "A draft" not in text


def test_without_rounds_training_leads_to_a_round(client):
    text = client.get(reverse("baseline-train")).content.decode()
    assert reverse("round-create") in text


def test_a_judge_shows_its_runs_and_calibrations(client):
    judge = make_judge()
    collection = make_judged_collection(judge)
    run = make_run(judge, collection)
    first = make_calibration(judge, collection)
    second = make_calibration(judge, collection)
    services.decide_calibration(
        calibration=first, decision="reject", reason="Too weak.", actor=None
    )
    response = client.get(reverse("judge-detail", args=[judge.pk]))
    text = response.content.decode()
    assert reverse("run-detail", args=[run.pk]) in text
    assert [c.pk for c in response.context["calibrations"]] == [second.pk, first.pk]
    assert "not decided" in text
    assert "rejected" in text


def test_queries_do_not_grow_with_rows(client):
    judge = make_judge()
    collection = make_judged_collection(judge, conversations=1)
    urls = [
        reverse("judge-list"),
        reverse("judge-detail", args=[judge.pk]),
        reverse("baseline-train"),
    ]

    def add(number):
        for place in range(number):
            made = make_calibration(judge, collection)
            services.decide_calibration(
                calibration=made, decision="reject", reason="Too weak.", actor=None
            )
            make_judge()
            make_run(judge, collection, status="done")
            name = f"round {Round.objects.count()} {place}"
            Round.objects.create(collection=make_collection(), name=name, status="open")

    def count(url):
        with CaptureQueriesContext(connection) as found:
            assert client.get(url).status_code == 200
        return len(found)

    add(10)
    before = [count(url) for url in urls]
    add(10)
    assert [count(url) for url in urls] == before

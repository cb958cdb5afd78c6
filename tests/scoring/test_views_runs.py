"""Runs: started and steered by form, watched by a fragment that stops asking at the end."""

import pytest
from celery.exceptions import OperationalError as BrokerError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from scoring import tasks
from scoring.models import Call, Run, RunItem, Verdict
from tests.factories import make_collection, make_user
from tests.scoring.making import make_judge, make_judged_collection, make_run

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(make_user(roles=["researcher"]))
    return client


@pytest.fixture
def woken(monkeypatch, django_capture_on_commit_callbacks):
    """Collect the runs that a worker is woken for, at the time of the commit."""
    found = []
    monkeypatch.setattr(tasks.work_run, "delay", found.append)
    monkeypatch.setattr(
        tasks.work_run, "apply_async", lambda args=(), kwargs=None, **_: found.append(args[0])
    )
    return found


def url(name, run):
    return reverse(name, args=[run.pk])


def test_a_run_is_started_and_a_worker_woken(client, woken, django_capture_on_commit_callbacks):
    judge = make_judge()
    collection = make_judged_collection(judge, conversations=2)
    with django_capture_on_commit_callbacks(execute=True):
        sent = {"judge": judge.pk, "collection": collection.pk}
        response = client.post(reverse("run-create"), sent)
    run = Run.objects.get()
    assert response.status_code == 302
    assert response["Location"] == url("run-detail", run)
    # Two conversations with four replies each.
    assert run.items.count() == 8
    assert woken == [run.pk]


def test_a_run_is_started_though_the_broker_is_away(client, monkeypatch):
    def fail(*_):
        raise BrokerError("connection refused")

    monkeypatch.setattr(tasks.work_run, "delay_on_commit", fail)
    judge = make_judge()
    collection = make_judged_collection(judge, conversations=1)
    sent = {"judge": judge.pk, "collection": collection.pk}
    assert client.post(reverse("run-create"), sent).status_code == 302
    assert Run.objects.get().status == "pending"


@pytest.mark.parametrize("sent", [{}, {"judge": "x", "collection": "y"}, {"judge": 10**9}])
def test_a_form_that_says_nothing_is_refused(client, sent):
    make_judge()
    response = client.post(reverse("run-create"), sent)
    assert response.status_code == 422
    assert not Run.objects.exists()


def test_what_cannot_run_is_refused_in_plain_words(client, woken):
    judge = make_judge()
    empty = make_collection(slug="nothing-here")
    response = client.post(reverse("run-create"), {"judge": judge.pk, "collection": empty.pk})
    assert response.status_code == 422
    assert "nothing-here has no reply to judge" in response.content.decode()
    assert woken == []


def test_the_form_takes_over_what_the_link_says(client):
    judge, collection = make_judge(), make_collection()
    response = client.get(reverse("run-create"), {"judge": judge.pk, "collection": collection.pk})
    assert f'<option value="{judge.pk}" selected>' in response.content.decode()
    assert f'<option value="{collection.pk}" selected>' in response.content.decode()


@pytest.mark.parametrize("status", ["pending", "running"])
def test_a_moving_run_asks_for_itself_again(client, status):
    run = make_run(status=status)
    page = client.get(url("run-detail", run)).content.decode()
    assert f'hx-get="{url("run-detail", run)}"' in page
    assert "Refresh" in page
    fragment = client.get(url("run-detail", run), headers=HTMX)
    assert fragment.status_code == 200
    text = fragment.content.decode()
    assert "hx-trigger" in text
    assert "<html" not in text


@pytest.mark.parametrize("status", ["done", "cancelled", "paused"])
def test_a_resting_run_stops_asking(client, status):
    run = make_run(status=status)
    assert "hx-trigger" not in client.get(url("run-detail", run)).content.decode()
    fragment = client.get(url("run-detail", run), headers=HTMX)
    # 286 is htmx's sign to stop polling.
    assert fragment.status_code == 286
    assert "hx-trigger" not in fragment.content.decode()
    assert run.get_status_display() in fragment["HX-Trigger"]


def test_progress_verdicts_and_faults_are_counted(client):
    run = make_run(status="running", started_at=timezone.now() - timezone.timedelta(minutes=2))
    # Model B of the made collection has no verdicts yet.
    unjudged = run.items.get(respondent__slug__startswith="model-b")
    failing = run.items.exclude(pk=unjudged.pk).first()
    call = Call.objects.create(run_item=unjudged, request_digest="a" * 64)
    Call.objects.filter(pk=call.pk).update(outcome="ok", settled_at=timezone.now())
    criteria = list(unjudged.reply.conversation.criteria.all())
    for criterion, met in zip(criteria, [True, True, False], strict=True):
        Verdict.objects.create(
            judge=run.judge, reply=unjudged.reply, criterion=criterion, met=met, call=call
        )
    Call.objects.create(
        run_item=failing, request_digest="b" * 64, outcome="timeout", settled_at=timezone.now()
    )
    RunItem.objects.filter(pk=unjudged.pk).update(state="done")
    RunItem.objects.filter(pk=failing.pk).update(state="failed", last_error="No answer came.")
    response = client.get(url("run-detail", run))
    progress, outcome = response.context["progress"], response.context["outcome"]
    assert (progress.finished, progress.total) == (2, 4)
    assert (outcome.met, outcome.not_met) == (2, 1)
    assert outcome.faults == [("timed out", 1)]
    assert outcome.failed_items == [("No answer came.", 1)]
    # Two replies in two minutes.
    assert response.context["rate"] == 1
    assert "No answer came." in response.content.decode()


def test_a_run_is_paused_resumed_and_cancelled(client, woken, django_capture_on_commit_callbacks):
    run = make_run(status="running")
    for name, status, wakes in (
        ("run-pause", "paused", []),
        ("run-resume", "pending", [run.pk]),
        ("run-cancel", "cancelled", []),
    ):
        woken.clear()
        with django_capture_on_commit_callbacks(execute=True):
            response = client.post(url(name, run))
        assert response["Location"] == url("run-detail", run)
        run.refresh_from_db()
        assert (run.status, woken) == (status, wakes)


def test_failed_replies_are_tried_again(client, woken, django_capture_on_commit_callbacks):
    run = make_run(status="done", finished_at=timezone.now())
    run.items.update(state="failed", attempts=5, last_error="No answer came.")
    assert url("run-retry", run) in client.get(url("run-detail", run)).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(url("run-retry", run))
    run.refresh_from_db()
    assert run.status == "pending"
    assert set(run.items.values_list("state", flat=True)) == {"pending"}
    assert woken == [run.pk]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ("done", "run-pause"),
        ("done", "run-cancel"),
        ("running", "run-resume"),
        ("cancelled", "run-retry"),
        ("running", "run-retry"),
    ],
)
def test_a_step_that_does_not_fit_is_refused_in_words(client, woken, status, name):
    run = make_run(status=status)
    response = client.post(url(name, run))
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    run.refresh_from_db()
    assert (run.status, woken) == (status, [])


def test_only_steps_that_fit_are_offered(client):
    offered = {
        "running": {"run-pause", "run-cancel"},
        "paused": {"run-resume", "run-cancel"},
        "done": set(),
        "cancelled": set(),
    }
    judge = make_judge()
    for status, expected in offered.items():
        run = make_run(judge, make_judged_collection(judge, conversations=1), status=status)
        text = client.get(url("run-detail", run)).content.decode()
        names = {"run-pause", "run-resume", "run-cancel", "run-retry"}
        assert {name for name in names if f'action="{url(name, run)}"' in text} == expected


def test_an_empty_list_leads_to_the_first_step(client):
    assert reverse("baseline-train") in client.get(reverse("run-list")).content.decode()
    make_judge()
    assert reverse("run-create") in client.get(reverse("run-list")).content.decode()


def test_queries_do_not_grow_with_rows(client):
    def count():
        with CaptureQueriesContext(connection) as found:
            assert client.get(reverse("run-list")).status_code == 200
        return len(found)

    for _ in range(10):
        make_run()
    before = count()
    for _ in range(10):
        make_run()
    assert count() == before

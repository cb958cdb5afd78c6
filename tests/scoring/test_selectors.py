"""Progress, boards and access read what is there, in a number of queries that does not grow."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scoring import access, engine
from scoring.models import Run, RunItem
from scoring.selectors import leaderboards, run_progress, score_set_for, unfinished_run
from scoring.services import cancel_run, refresh_scores, start_run, train_baseline
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(labelled) -> Run:
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    return start_run(judge=judge, collection=labelled.collection, actor=None)


def test_progress_counts_items_and_estimates_the_rest(run):
    ids = list(run.items.values_list("pk", flat=True))
    RunItem.objects.filter(pk__in=ids[:5]).update(state="done")
    RunItem.objects.filter(pk=ids[5]).update(state="failed", last_error="no answer")
    began = timezone.now() - timedelta(minutes=2)
    Run.objects.filter(pk=run.pk).update(started_at=began, status="running")
    run.refresh_from_db()
    progress = run_progress(run)
    assert (progress.total, progress.done, progress.failed, progress.pending) == (12, 5, 1, 6)
    assert progress.share == 0.5
    # Six in two minutes: three a minute, and two minutes for the other six.
    assert progress.per_minute == pytest.approx(3, rel=0.05)
    assert progress.seconds_left == pytest.approx(120, abs=6)
    assert progress.last_error == "no answer"
    assert not progress.ended


def test_a_run_that_has_not_begun_or_has_ended_estimates_nothing(run):
    assert run_progress(run).seconds_left is None
    assert unfinished_run(run.judge, run.collection) == run
    cancel_run(run_id=run.pk, actor=None)
    run.refresh_from_db()
    assert run_progress(run).ended
    assert unfinished_run(run.judge, run.collection) is None


def test_pages_read_boards_without_computing(labelled, run, django_assert_num_queries):
    engine.work_on(run.pk)
    with django_assert_num_queries(1):
        board = score_set_for(labelled.collection, run.judge)
        assert (board.collection.slug, board.judge.name) == (labelled.collection.slug, "baseline")
    with django_assert_num_queries(1):
        assert leaderboards(labelled.collection) == [board]


def test_computing_scores_takes_no_more_queries_for_more_replies(make_labelled):
    counts = []
    for conversations in (6, 12):
        labelled = make_labelled(conversations=conversations)
        judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
        with CaptureQueriesContext(connection) as queries:
            refresh_scores(collection=labelled.collection, judge=judge)
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("roles", [(), ("clinician",), ("senior clinician",)])
def test_who_does_not_research_sees_no_judge_run_or_result(run, roles):
    user = factories.make_user(roles=roles) if roles else AnonymousUser()
    for look in (
        lambda: access.judge_for(user, run.judge_id),
        lambda: access.run_for(user, run.pk),
        lambda: access.calibration_for(user, 1),
        lambda: access.result_collection_for(user, run.collection.slug),
    ):
        with pytest.raises(PermissionDenied):
            look()


@pytest.mark.parametrize("role", ["researcher", "admin"])
def test_researchers_and_admins_see_them_and_404_for_what_is_not_there(run, role):
    user = factories.make_user(roles=[role])
    assert access.judge_for(user, run.judge_id) == run.judge
    assert access.run_for(user, run.pk) == run
    assert access.result_collection_for(user, run.collection.slug) == run.collection
    for look in (
        lambda: access.run_for(user, run.pk + 1),
        lambda: access.judge_for(user, run.judge_id + 1),
        lambda: access.calibration_for(user, 1),
        lambda: access.result_collection_for(user, "nowhere"),
    ):
        with pytest.raises(Http404):
            look()

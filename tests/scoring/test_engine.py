"""Runs end with one verdict per unit, whatever ends the workers in between."""

import threading
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from corpus.models import Conversation
from scoring import engine, tasks
from scoring.models import Call, Judge, Run, RunItem, Verdict
from scoring.selectors import run_progress, score_set_for
from scoring.services import pause_run, start_run, train_baseline

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(labelled) -> Judge:
    return train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)


@pytest.fixture
def run(labelled, judge) -> Run:
    return start_run(judge=judge, collection=labelled.collection, actor=None)


def units(labelled) -> Counter:
    """Count one for each unit that a run of the collection has to judge."""
    return Counter(
        (reply.pk, criterion.pk)
        for reply in labelled.replies
        for criterion in reply.conversation.criteria.all()
    )


def judged() -> Counter:
    return Counter(Verdict.objects.values_list("reply_id", "criterion_id"))


def lapse() -> None:
    RunItem.objects.filter(state="leased").update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_run_leaves_a_call_for_each_reply_and_a_verdict_for_each_unit(labelled, judge, run):
    assert engine.work_on(run.pk) == "ended"
    assert judged() == units(labelled)
    assert Call.objects.filter(outcome="ok", settled_at__isnull=False).count() == 12
    verdict = Verdict.objects.select_related("call__run_item").first()
    assert verdict.call.run_item.reply_id == verdict.reply_id
    assert 0 <= verdict.probability <= 1
    assert verdict.met == (verdict.probability >= judge.params["threshold"])
    run.refresh_from_db()
    assert run.status == Run.Status.DONE
    assert run.started_at <= run.finished_at
    assert score_set_for(labelled.collection, judge) is not None


def test_a_verdict_on_a_conversation_of_training_comes_from_the_model_without_it(
    labelled, judge, run
):
    from scoring.baseline import Predictor

    engine.work_on(run.pk)
    predictor = Predictor(judge.artifact)
    dev = labelled.collection.split.members.filter(part="dev").first().conversation
    key = f"{labelled.collection.slug}/{dev.key}"
    assert predictor.was_trained_on(key)
    for verdict in Verdict.objects.filter(reply__conversation=dev):
        text = "\n\n".join(verdict.reply.turns)
        [own] = predictor.probabilities(key, text, [verdict.criterion.text])
        assert verdict.probability == pytest.approx(own, abs=1e-6)


def test_a_worker_that_dies_between_call_and_verdict_is_followed_by_another(
    labelled, run, monkeypatch
):
    class Died(BaseException):
        """What no handler of the engine may catch, as nothing catches kill -9."""

    def die(*_):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(engine, "settle", die)
        with pytest.raises(Died):
            engine.work_on(run.pk)
    sent = Call.objects.count()
    assert sent
    assert not Call.objects.filter(outcome__isnull=False).exists()
    assert not Verdict.objects.exists()
    # Its lease still holds: nobody takes its items, and the run has not ended.
    assert engine.work_on(run.pk) == "elsewhere"
    assert not Verdict.objects.exists()
    lapse()
    assert engine.waiting_runs() == [run.pk]
    assert engine.work_on(run.pk) == "ended"
    assert judged() == units(labelled)
    outcomes = Counter(Call.objects.values_list("outcome", flat=True))
    assert outcomes == {"cut": sent, "ok": 12}
    assert set(Call.objects.filter(outcome="ok").values_list("attempt", flat=True)) == {2}


def test_a_worker_that_lost_its_lease_leaves_no_second_verdict(labelled, judge, run):
    slow, fast = engine.worker_name(), engine.worker_name()
    from scoring.baseline import Predictor

    predictor = Predictor(judge.artifact)
    batch = engine.prepare(judge, engine.claim(run.pk, slow))
    for work in batch:
        engine.answer(run, judge, predictor, work)
    lapse()
    assert engine.work_on(run.pk, worker=fast) == "ended"
    before = list(Verdict.objects.values_list("pk", "probability"))
    engine.settle(run, batch, slow)
    assert list(Verdict.objects.values_list("pk", "probability")) == before
    assert judged() == units(labelled)
    assert not RunItem.objects.exclude(state="done").exists()


def test_a_renewed_lease_holds(run):
    worker = engine.worker_name()
    items = engine.claim(run.pk, worker)
    lapse()
    engine.renew(run.pk, worker)
    assert engine.claim(run.pk, engine.worker_name()) == []
    assert len(items) == 12


def test_an_item_that_ends_its_workers_again_and_again_is_given_up(labelled, run):
    for _ in range(engine.MAX_ATTEMPTS):
        assert engine.claim(run.pk, engine.worker_name())
        lapse()
    assert engine.work_on(run.pk) == "ended"
    progress = run_progress(Run.objects.get(pk=run.pk))
    assert (progress.failed, progress.done) == (12, 0)
    assert "Given up" in progress.last_error


def test_a_fault_of_one_reply_stays_with_it(labelled, run, monkeypatch):
    from scoring.baseline import Predictor

    original = Predictor.probabilities
    odd = labelled.replies[3]

    def sometimes(self, conversation, reply, criteria):
        if reply == odd.turns[0]:
            raise ArithmeticError("no such number")
        return original(self, conversation, reply, criteria)

    monkeypatch.setattr(Predictor, "probabilities", sometimes)
    assert engine.work_on(run.pk) == "ended"
    item = run.items.get(reply=odd)
    assert (item.state, item.last_error) == ("failed", "ArithmeticError: no such number")
    assert run.items.filter(state="done").count() == 11
    run.refresh_from_db()
    assert run.last_error == "ArithmeticError: no such number"
    assert run_progress(run).failed == 1


def test_a_judge_that_cannot_be_read_fails_its_items_in_words(labelled):
    broken = Judge.objects.create(
        name="broken", version=1, kind="baseline", digest="f" * 64, artifact={"format": "?"}
    )
    run = start_run(judge=broken, collection=labelled.collection, actor=None)
    assert engine.work_on(run.pk) == "ended"
    progress = run_progress(Run.objects.get(pk=run.pk))
    assert progress.failed == 12
    assert "no artifact that this program can read" in progress.last_error


def test_a_pause_is_seen_between_batches(run, monkeypatch):
    monkeypatch.setattr(engine, "BATCH", 4)

    def pause(done: int) -> None:
        pause_run(run_id=run.pk, actor=None)

    assert engine.work_on(run.pk, progress=pause) == "halted"
    assert not run.items.filter(state="leased").exists()
    assert run.items.filter(state="pending").exists()


def test_the_stop_flag_and_the_end_of_the_slice_leave_the_rest_for_later(run):
    stop = threading.Event()
    stop.set()
    assert engine.work_on(run.pk, stop=stop) == "more"
    assert engine.work_on(run.pk, seconds=0) == "more"
    assert not Verdict.objects.exists()
    assert engine.work_on(run.pk) == "ended"


def test_the_sweep_wakes_a_worker_for_each_run_that_nobody_works_on(run, monkeypatch):
    woken = []
    monkeypatch.setattr(tasks.work_run, "delay", woken.append)
    tasks.sweep()
    assert woken == [run.pk]
    engine.claim(run.pk, engine.worker_name())
    tasks.sweep()
    assert woken == [run.pk]


def test_a_task_works_on_and_asks_for_the_next_slice_only_if_there_is_more(run, monkeypatch):
    asked = []
    monkeypatch.setattr(tasks.work_run, "delay", asked.append)
    monkeypatch.setattr(tasks.stopping, "is_set", lambda: False)
    monkeypatch.setattr(engine, "work_on", lambda *_, **__: "more")
    tasks.work_run(run.pk)
    assert asked == [run.pk]
    monkeypatch.undo()
    monkeypatch.setattr(tasks.work_run, "delay", asked.append)
    tasks.work_run(run.pk)
    assert asked == [run.pk]
    assert Run.objects.get(pk=run.pk).status == Run.Status.DONE


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_share_a_run_and_judge_every_unit_once(make_labelled, monkeypatch):
    labelled = make_labelled(conversations=12)
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    run = start_run(judge=judge, collection=labelled.collection, actor=None)
    shares: Counter = Counter()
    faults: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        name = engine.worker_name()
        try:
            barrier.wait(30)
            while items := engine.claim(run.pk, name, 3):
                predictor = engine.baseline.Predictor(judge.artifact)
                engine.judge_batch(run, judge, predictor, items, name)
                shares[name] += len(items)
            engine.finish(run)
        except BaseException as error:
            faults.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not faults
    assert engine.work_on(run.pk) == "ended"
    assert sum(shares.values()) == 24
    assert judged() == units(labelled)
    assert Call.objects.exclude(outcome="ok").count() == 0
    assert set(run.items.values_list("attempts", flat=True)) == {1}


def test_the_sweep_refreshes_scores_of_changed_data(labelled, judge, run):
    engine.work_on(run.pk)
    before = score_set_for(labelled.collection, judge)
    Conversation.objects.filter(pk=labelled.replies[0].conversation_id).update(status="withdrawn")
    tasks.sweep()
    after = score_set_for(labelled.collection, judge)
    assert after.payload["conversations"] == before.payload["conversations"] - 1

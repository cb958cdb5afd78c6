"""Splits, training, runs, calibrations and scores through the services."""

from collections import Counter

import pytest
from django.core.exceptions import ValidationError

from annotation.models import Round
from annotation.services import reopen_assignment, save_label, submit_assignment
from corpus.models import Collection, Conversation, Criterion, RubricItem
from distressbench_site.accounts.models import AuditEvent
from scoring import engine
from scoring.models import Judge, Run, RunItem, ScoreSet, Split, SplitMember, Verdict
from scoring.selectors import (
    calibration_status,
    current_calibration,
    judge_digest,
    leaderboards,
    ruler,
    run_progress,
    score_set_for,
)
from scoring.services import (
    calibrate,
    cancel_run,
    decide_calibration,
    make_split,
    open_split,
    pause_run,
    refresh_scores,
    resume_run,
    retry_failed,
    start_run,
    train_baseline,
)
from tests import factories

pytestmark = pytest.mark.django_db


def parts(split: Split) -> dict[str, str]:
    return dict(split.members.values_list("conversation__key", "part"))


def run_through(judge: Judge, collection: Collection) -> Run:
    run = start_run(judge=judge, collection=collection, actor=None)
    assert engine.work_on(run.pk) == "ended"
    run.refresh_from_db()
    return run


def relabel(labelled, value: str, part: str = "test") -> None:
    """Turn the first annotator's answer to one criterion of one reply of this part."""
    member = SplitMember.objects.filter(split__collection=labelled.collection, part=part).first()
    item = labelled.round.items.filter(reply__conversation=member.conversation).first()
    annotator = labelled.annotators[0]
    assignment = item.assignments.get(annotator=annotator)
    reopen_assignment(assignment_id=assignment.pk, annotator=annotator)
    save_label(
        assignment_id=assignment.pk,
        annotator=annotator,
        criterion_id=item.asked.first().criterion_id,
        client="again",
        seq=1,
        value=value,
        reason="reply_ambiguous" if value == "cannot_tell" else "",
    )
    submit_assignment(assignment_id=assignment.pk, annotator=annotator)


# Splits


def test_a_split_has_both_parts_near_the_share_and_single_and_multi_in_both():
    collection = factories.make_collection()
    two = [{"role": "user", "text": "a"}, {"role": "user", "text": "b"}]
    for number in range(30):
        factories.make_conversation(
            collection, key=f"k{number}", criteria=0, turns=two if number % 2 else None
        )
    split = make_split(collection=collection, seed=3)
    found = Counter(split.members.values_list("conversation__multi_turn", "part"))
    assert found[(False, "dev")] + found[(False, "test")] == 15
    assert 4 <= found[(False, "dev")] <= 6
    assert 4 <= found[(True, "dev")] <= 6


def test_the_same_seed_gives_the_same_split_and_another_seed_another():
    collections = [factories.make_collection() for _ in range(3)]
    for collection in collections:
        for number in range(20):
            factories.make_conversation(collection, key=f"k{number:02}", criteria=0)
    one, same, other = (
        parts(make_split(collection=collection, seed=seed))
        for collection, seed in zip(collections, (1, 1, 2), strict=True)
    )
    assert one == same
    assert one != other


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_two_conversations_suffice_for_both_parts(count: int, seed: int):
    collection = factories.make_collection()
    for number in range(count):
        factories.make_conversation(collection, key=f"k{number}", criteria=0)
    assert set(parts(make_split(collection=collection, seed=seed)).values()) == {"dev", "test"}


def test_new_conversations_join_the_split_and_old_ones_keep_their_part():
    collection = factories.make_collection()
    for number in range(6):
        factories.make_conversation(collection, key=f"k{number}", criteria=0)
    before = parts(make_split(collection=collection))
    for number in range(6, 12):
        factories.make_conversation(collection, key=f"k{number}", criteria=0)
    after = parts(make_split(collection=collection, seed=99, dev_share=0.9))
    assert {key: after[key] for key in before} == before
    assert len(after) == 12
    assert Split.objects.get(collection=collection).seed == 0


def test_a_correction_stays_in_the_part_of_what_it_corrects():
    collection = factories.make_collection()
    olds = [factories.make_conversation(collection, criteria=0) for _ in range(6)]
    split = make_split(collection=collection)
    news = [factories.make_conversation(collection, criteria=0, supersedes=old) for old in olds]
    make_split(collection=collection)
    found = dict(split.members.values_list("conversation_id", "part"))
    assert [found[new.pk] for new in news] == [found[old.pk] for old in olds]


def test_openings_are_numbered_have_a_reason_and_are_in_the_audit_log():
    collection = factories.make_collection()
    factories.make_conversation(collection)
    split = make_split(collection=collection)
    researcher = factories.make_user(roles=["researcher"])
    with pytest.raises(ValidationError, match="Say why"):
        open_split(split=split, reason="  ", targets={}, actor=researcher)
    first = open_split(split=split, reason="to see", targets={"j": 0.5}, actor=researcher)
    second = open_split(split=split, reason="again", targets={}, actor=researcher)
    assert (first.number, second.number) == (1, 2)
    assert AuditEvent.objects.filter(action="split opened", actor=researcher).count() == 2


# Training


def test_training_uses_dev_labels_alone_and_records_where_it_came_from(labelled):
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    dev = {key for key, part in parts(labelled.collection.split).items() if part == "dev"}
    assert {key.split("/")[1] for key in judge.artifact["folds"]} == dev
    trained = judge.params["trained_on"]
    assert trained["rounds"] == [labelled.round.name]
    assert trained["n_conversations"] == len(dev)
    assert trained["n_units"] == len(dev) * 2 * 2
    assert judge.kind == Judge.Kind.BASELINE


def test_the_same_training_twice_is_the_same_judge(labelled):
    first = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    relabel(labelled, "not_met", part="test")
    again = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    assert again == first
    assert Judge.objects.count() == 1
    relabel(labelled, "cannot_tell", part="dev")
    other = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    assert (other.name, other.version) == ("baseline", 2)
    assert other.digest != first.digest


def test_a_judges_digest_covers_everything_that_can_change_a_verdict(labelled):
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    names = ("kind", "endpoint", "model", "prompt", "params", "artifact", "mode")
    configuration = {name: getattr(judge, name) for name in names}
    assert judge_digest(**configuration) == judge.digest
    for name in names:
        changed = {**configuration, name: {"x": 1} if name in ("params", "artifact") else "x"}
        assert judge_digest(**changed) != judge.digest


def test_training_without_enough_labels_says_what_to_do():
    collection = factories.make_collection()
    conversation = factories.make_conversation(collection)
    factories.make_conversation(collection)
    made = factories.make_round([factories.make_reply(conversation)], [factories.make_annotator()])
    with pytest.raises(ValidationError, match="dev part .* have more of its replies labelled"):
        train_baseline(collection=collection, rounds=[made], actor=None)
    assert not Judge.objects.exists()


def test_practice_and_foreign_rounds_train_nothing(labelled):
    other = factories.make_collection()
    with pytest.raises(ValidationError, match="another collection"):
        train_baseline(collection=other, rounds=[labelled.round], actor=None)
    Round.objects.filter(pk=labelled.round.pk).update(purpose="practice")
    labelled.round.refresh_from_db()
    with pytest.raises(ValidationError, match="practice"):
        train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    with pytest.raises(ValidationError, match="at least one round"):
        train_baseline(collection=labelled.collection, rounds=[], actor=None)


# Runs


@pytest.fixture
def judge(labelled) -> Judge:
    return train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)


def test_a_run_has_every_reply_under_a_published_rubric_and_no_other(labelled, judge):
    bare = factories.make_conversation(labelled.collection, criteria=0)
    factories.make_reply(bare, labelled.good)
    gone = factories.make_conversation(labelled.collection)
    factories.make_reply(gone, labelled.good)
    Conversation.objects.filter(pk=gone.pk).update(status="withdrawn")
    run = start_run(judge=judge, collection=labelled.collection, actor=None)
    assert set(run.items.values_list("reply", flat=True)) == {r.pk for r in labelled.replies}


def test_a_second_run_waits_for_the_first_and_then_asks_nothing_again(labelled, judge):
    run = start_run(judge=judge, collection=labelled.collection, actor=None)
    with pytest.raises(ValidationError, match=f"Run {run.pk} .* not ended"):
        start_run(judge=judge, collection=labelled.collection, actor=None)
    assert engine.work_on(run.pk) == "ended"
    before = list(Verdict.objects.values_list("pk", flat=True))
    second = run_through(judge, labelled.collection)
    assert list(Verdict.objects.values_list("pk", flat=True)) == before
    assert run_progress(second).done == len(labelled.replies)


def test_a_language_model_judge_and_an_empty_collection_are_refused(labelled, judge):
    model = Judge.objects.create(name="gpt", version=1, kind="llm", digest="d" * 64)
    with pytest.raises(ValidationError, match="baseline only"):
        start_run(judge=model, collection=labelled.collection, actor=None)
    with pytest.raises(ValidationError, match="no reply to judge"):
        start_run(judge=judge, collection=factories.make_collection(), actor=None)


def test_a_run_is_paused_resumed_and_cancelled_only_where_that_makes_sense(labelled, judge):
    run = start_run(judge=judge, collection=labelled.collection, actor=None)
    pause_run(run_id=run.pk, actor=None)
    assert engine.work_on(run.pk) == "halted"
    assert not Verdict.objects.exists()
    with pytest.raises(ValidationError, match="is paused"):
        pause_run(run_id=run.pk, actor=None)
    resume_run(run_id=run.pk, actor=None)
    cancel_run(run_id=run.pk, actor=None)
    assert engine.work_on(run.pk) == "ended"
    for act in (pause_run, resume_run, cancel_run):
        with pytest.raises(ValidationError, match="is cancelled"):
            act(run_id=run.pk, actor=None)
    with pytest.raises(ValidationError, match="cancelled run"):
        retry_failed(run_id=run.pk, actor=None)


def test_failed_replies_are_judged_again_on_request(labelled, judge):
    run = run_through(judge, labelled.collection)
    with pytest.raises(ValidationError, match="No reply"):
        retry_failed(run_id=run.pk, actor=None)
    RunItem.objects.filter(pk=run.items.first().pk).update(state="failed", last_error="x")
    assert retry_failed(run_id=run.pk, actor=None) == 1
    run.refresh_from_db()
    assert run.status == Run.Status.PENDING
    assert engine.work_on(run.pk) == "ended"
    assert not run.items.exclude(state="done").exists()


# Calibrations


@pytest.fixture
def judged(labelled, judge) -> Judge:
    run_through(judge, labelled.collection)
    return judge


def test_calibration_measures_test_conversations_against_the_consensus(make_labelled):
    labelled = make_labelled(conversations=9)
    judged = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    run_through(judged, labelled.collection)
    calibration = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    metrics = calibration.metrics
    tested = [key for key, part in parts(labelled.collection.split).items() if part == "test"]
    assert calibration.parameters["conversations"] == sorted(tested)
    assert metrics["part"] == "test"
    assert metrics["n_conversations"] == len(tested)
    # Two replies of two criteria in each; the good ones met by both annotators, the bad ones not.
    assert metrics["n_units"] == len(tested) * 4
    overall = metrics["overall"]
    verdicts = Verdict.objects.filter(
        judge=judged, reply__conversation__key__in=tested
    ).values_list("reply__respondent_id", "met")
    found = Counter(verdicts)
    assert overall["tp"] == found[(labelled.good.pk, True)]
    assert overall["fn"] == found[(labelled.good.pk, False)]
    assert overall["fp"] == found[(labelled.bad.pk, True)]
    assert overall["tn"] == found[(labelled.bad.pk, False)]
    assert sum(panel["n_units"] for panel in metrics["dimensions"].values()) == metrics["n_units"]
    names = [clinician["annotator"] for clinician in metrics["standing"]["clinicians"]]
    assert sorted(names) == sorted(annotator.pseudonym for annotator in labelled.annotators)
    # The two annotators agree on every unit, and both answers occur.
    assert metrics["agreement"]["alpha"]["value"] == 1
    assert metrics["constant"]["accuracy"] == 0.5


def test_calibrating_opens_the_split_once_and_twice_is_the_same(labelled, judged):
    first = calibrate(judge=judged, rounds=[labelled.round], actor=None, reason="to compare")
    again = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    assert again == first
    opening = labelled.collection.split.openings.get()
    assert (opening.number, opening.reason) == (1, "to compare")


def test_calibration_needs_verdicts_and_labels(labelled, judge):
    with pytest.raises(ValidationError, match="has judged none"):
        calibrate(judge=judge, rounds=[labelled.round], actor=None)
    assert not labelled.collection.split.openings.exists()
    empty = factories.make_round(labelled.replies, [factories.make_annotator()])
    with pytest.raises(ValidationError, match="agreed labels"):
        calibrate(judge=judge, rounds=[empty], actor=None)


def test_a_decision_needs_a_reason_and_the_newest_counts(labelled, judged):
    calibration = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    with pytest.raises(ValidationError, match="needs a reason"):
        decide_calibration(calibration=calibration, decision="approve", reason=" ", actor=None)
    with pytest.raises(ValidationError, match="Approve, reject"):
        decide_calibration(calibration=calibration, decision="maybe", reason="x", actor=None)
    assert current_calibration(judged, labelled.collection) is None
    decide_calibration(calibration=calibration, decision="approve", reason="good", actor=None)
    assert current_calibration(judged, labelled.collection) == calibration
    assert calibration_status(calibration).approved
    decide_calibration(calibration=calibration, decision="reject", reason="not so", actor=None)
    assert current_calibration(judged, labelled.collection) is None
    assert AuditEvent.objects.filter(action="calibration approved").exists()


def test_a_changed_label_makes_a_calibration_stale(labelled, judged):
    calibration = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    decide_calibration(calibration=calibration, decision="approve", reason="good", actor=None)
    assert score_set_for(labelled.collection, judged).payload["approved"] is True
    relabel(labelled, "cannot_tell")
    status = calibration_status(calibration)
    assert status.stale
    assert status.reasons == ["Labels have changed since."]
    board = refresh_scores(collection=labelled.collection, judge=judged).payload
    assert (board["approved"], board["stale"], board["calibration"]) == (False, True, 1)
    with pytest.raises(ValidationError, match="stale and cannot be approved"):
        decide_calibration(calibration=calibration, decision="approve", reason="x", actor=None)
    second = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    assert second.number == 2
    decide_calibration(calibration=second, decision="approve", reason="better", actor=None)
    newest = calibration.decisions.order_by("-id").first()
    assert newest.decision == "supersede"
    assert current_calibration(judged, labelled.collection) == second


def restate(conversation: Conversation) -> Criterion:
    """Publish a rubric in which the first criterion has another wording of the same meaning."""
    old = conversation.rubrics.get(status="published")
    first, *others = old.items.order_by("position")
    again = Criterion.objects.create(
        conversation=conversation,
        key="restated",
        text="The same, said better.",
        same_meaning_as=first.criterion,
        reason="typo",
    )
    rubric = conversation.rubrics.create(version=old.version + 1)
    for position, (item, criterion) in enumerate(
        [(first, again), *((item, item.criterion) for item in others)], start=1
    ):
        RubricItem.objects.create(
            rubric=rubric,
            criterion=criterion,
            dimension=item.dimension,
            weight=item.weight,
            position=position,
        )
    factories.publish_rubric(rubric)
    return again


def test_a_restated_criterion_keeps_its_labels_and_is_asked_again(labelled, judged):
    calibration = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    tested = labelled.collection.split.members.filter(part="test").first().conversation
    again = restate(tested)
    assert calibration_status(calibration).reasons == ["Criteria have changed since."]
    unjudged = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    assert unjudged.metrics["overall"]["n_unjudged"] == 2
    run_through(judged, labelled.collection)
    assert Verdict.objects.filter(criterion=again).count() == 2
    assert Verdict.objects.filter(judge=judged).count() == 6 * 4 + 2
    third = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    assert third.metrics["n_units"] == calibration.metrics["n_units"]
    assert third.parameters["n_outdated"] == 0


def test_a_reworded_criterion_leaves_the_calibration(labelled, judged):
    calibration = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    tested = labelled.collection.split.members.filter(part="test").first().conversation
    factories.make_rubric(tested, ["Something else.", "And another thing."])
    second = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    assert second.parameters["n_outdated"] == 4
    assert second.metrics["n_units"] == calibration.metrics["n_units"] - 4


# Scores


def test_scores_equal_a_slow_reading_of_their_definition(labelled, judged):
    board = refresh_scores(collection=labelled.collection, judge=judged).payload
    for respondent in (labelled.good, labelled.bad):
        shares = []
        for reply in respondent.replies.all():
            items = RubricItem.objects.filter(rubric__conversation=reply.conversation)
            weights = {item.criterion_id: item.weight for item in items}
            met = [v.criterion_id for v in reply.verdicts.filter(judge=judged, met=True)]
            shares.append(sum(weights[key] for key in met) / sum(weights.values()))
        row = next(r for r in board["rows"] if r["respondent"] == respondent.slug)
        assert row["score"]["value"] == pytest.approx(sum(shares) / len(shares), abs=1e-9)
        assert row["missing_weight"] == 0
        assert row["samples"] == 1
    refused = {row["respondent"]: row["refusal_rate"] for row in board["rows"]}
    assert refused == {labelled.good.slug: 0, labelled.bad.slug: 1}


def test_rows_stand_reference_first_then_by_score_then_floors(labelled, judge):
    for kind in ("reference", "floor"):
        respondent = factories.make_respondent(kind=kind)
        factories.make_reply(labelled.replies[0].conversation, respondent)
    run_through(judge, labelled.collection)
    board = score_set_for(labelled.collection, judge).payload
    assert [row["kind"] for row in board["rows"]] == ["reference", "model", "model", "floor"]
    scores = [row["score"]["value"] for row in board["rows"] if row["kind"] == "model"]
    assert scores == sorted(scores, reverse=True)


def test_unjudged_criteria_are_missing_weight_and_never_zero(labelled, judged):
    extra = factories.make_conversation(labelled.collection, criteria=2)
    factories.make_reply(extra, labelled.good)
    board = refresh_scores(collection=labelled.collection, judge=judged).payload
    row = next(r for r in board["rows"] if r["respondent"] == labelled.good.slug)
    # Seven conversations of two criteria of weight 5, one of them without any verdict.
    assert row["missing_weight"] == pytest.approx(1 / 7, abs=1e-9)
    assert row["n_unscored"] == 1
    assert row["n_conversations"] == 6
    assert row["bounds"][0] < row["bounds"][1]


def test_a_board_without_verdicts_has_reasons_instead_of_numbers(labelled, judge):
    board = refresh_scores(collection=labelled.collection, judge=judge).payload
    assert {row["score"]["value"] for row in board["rows"]} == {None}
    assert {row["score"]["reason"] for row in board["rows"]} == {"too_little_judged"}


def test_recognition_without_routing_is_pooled_over_models_only(make_labelled):
    labelled = make_labelled(criteria=4)
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    reference = factories.make_respondent(kind="reference")
    factories.make_reply(
        labelled.replies[0].conversation, reference, turns=["I hear you. Call the helpline."]
    )
    run_through(judge, labelled.collection)
    board = score_set_for(labelled.collection, judge).payload
    own = [row["routing"]["any_not_met"] for row in board["rows"]]
    models = [
        row["routing"]["any_not_met"]["denominator"]
        for row in board["rows"]
        if row["kind"] == "model"
    ]
    assert len(own) == 3
    assert board["pooled_routing"]["any_not_met"]["denominator"] == sum(models)


def test_scores_are_computed_once_per_state_and_ruler(labelled, judged):
    first = score_set_for(labelled.collection, judged)
    assert refresh_scores(collection=labelled.collection, judge=judged) == first
    tested = labelled.collection.split.members.filter(part="test").first().conversation
    Conversation.objects.filter(pk=tested.pk).update(status="withdrawn")
    fewer = refresh_scores(collection=labelled.collection, judge=judged)
    assert fewer.payload["conversations"] == first.payload["conversations"] - 1
    assert score_set_for(labelled.collection, judged) == fewer
    Conversation.objects.filter(pk=tested.pk).update(status="active")
    back = refresh_scores(collection=labelled.collection, judge=judged)
    assert back.payload == first.payload
    assert score_set_for(labelled.collection, judged) == back
    assert ScoreSet.objects.count() == 2


def test_the_ruler_changes_with_rubrics_judge_and_calibration(labelled, judged):
    collection = labelled.collection
    plain = ruler(collection, judged, None)
    other = Judge.objects.create(name="other", version=1, digest="e" * 64)
    calibration = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    found = {plain, ruler(collection, other, None), ruler(collection, judged, calibration)}
    restate(labelled.replies[0].conversation)
    assert len(found | {ruler(collection, judged, None)}) == 4


def test_each_judge_has_one_board_and_approved_ones_stand_first(labelled, judged):
    relabel(labelled, "cannot_tell", part="dev")
    second = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    run_through(second, labelled.collection)
    assert [board.judge for board in leaderboards(labelled.collection)] == [second, judged]
    calibration = calibrate(judge=judged, rounds=[labelled.round], actor=None)
    decide_calibration(calibration=calibration, decision="approve", reason="good", actor=None)
    assert [board.judge for board in leaderboards(labelled.collection)] == [judged, second]

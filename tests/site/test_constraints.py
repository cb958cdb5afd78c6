"""Each named constraint and each unique column of the models refuses what it is there for."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, IntegrityError, connection, models, transaction
from django.db.models import Model, ProtectedError

from annotation.models import Annotator
from distressbench_site.accounts import guards
from tests.site.world import make_world

OURS = ("accounts", "corpus", "annotation", "scoring")
MODELS = [model for label in OURS for model in apps.get_app_config(label).get_models()]
World = Any


def copied(row: Model, **changes: Any) -> Callable[[], None]:
    """Return the act of saving a copy of a row, changed."""

    def act() -> None:
        values = {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields}
        type(row)(**{**values, "id": None, **changes}).save(force_insert=True)

    return act


def changed(row: Model, **changes: Any) -> Callable[[], None]:
    """Return the act of changing a row."""
    return lambda: type(row)._base_manager.filter(pk=row.pk).update(**changes)


# The guards are lifted for these, so that nothing but the constraint can refuse.
BREAKS: dict[str, Callable[[World], Callable[[], None]]] = {
    "accounts_user_email_unique": lambda w: changed(w.user, email="BEN@example.ORG"),
    "accounts_invitation.token_digest": lambda w: copied(w.invitation),
    "corpus_collection.slug": lambda w: changed(w.collection, slug=w.elsewhere.slug),
    "corpus_dimension_collection_slug_unique": lambda w: copied(w.dimension),
    "corpus_dimension_stance_known": lambda w: changed(w.dimension, stance="maybe"),
    "corpus_subcategory_collection_slug_unique": lambda w: copied(w.subcategory),
    "corpus_conversation_collection_key_unique": lambda w: copied(w.conversation),
    "corpus_conversation_status_known": lambda w: changed(w.conversation, status="lost"),
    "corpus_conversation_not_its_own_successor": lambda w: changed(
        w.conversation, supersedes=w.conversation.pk
    ),
    "corpus_conversation.supersedes_id": lambda w: (
        lambda: [changed(row, supersedes=w.second)() for row in (w.conversation, w.foreign)]
    ),
    "corpus_criterion_conversation_key_unique": lambda w: copied(w.c1),
    "corpus_criterion_restatement_has_reason": lambda w: changed(w.c1, same_meaning_as=w.c2),
    "corpus_rubric_version_unique": lambda w: copied(w.rubric, status="retired"),
    "corpus_rubric_one_draft": lambda w: copied(w.draft, version=9),
    "corpus_rubric_one_published": lambda w: copied(w.rubric, version=9),
    "corpus_rubric_published_has_date": lambda w: changed(w.rubric, published_at=None),
    "corpus_rubric_version_from_1": lambda w: changed(w.draft, version=0),
    "corpus_rubricitem_criterion_once": lambda w: copied(w.rubric_item, position=99),
    "corpus_rubricitem_position_once": lambda w: copied(
        w.rubric_item, criterion_id=w.free_criterion.pk
    ),
    "corpus_rubricitem_weight_1_to_20": lambda w: changed(w.rubric_item, weight=21),
    "corpus_respondent.slug": lambda w: copied(w.model),
    "corpus_respondent_kind_known": lambda w: changed(w.model, kind="oracle"),
    "corpus_reply_sample_unique": lambda w: copied(w.reply),
    "corpus_reply_outcome_known": lambda w: changed(w.reply, outcome="lost"),
    "annotation_annotator.pseudonym": lambda w: changed(w.ann, pseudonym=w.ben.pseudonym),
    "annotation_annotator.user_id": lambda w: changed(w.ben, user=w.user),
    "annotation_round.name": lambda w: copied(w.round),
    "annotation_round_overlap_1_to_10": lambda w: changed(w.round, overlap=11),
    "annotation_round_status_known": lambda w: changed(w.round, status="lost"),
    "annotation_round_purpose_known": lambda w: changed(w.round, purpose="fun"),
    "annotation_roundmember_once": lambda w: copied(w.member),
    "annotation_rounditem_once": lambda w: copied(w.item),
    "annotation_rounditem_kind_known": lambda w: changed(w.item, kind="other"),
    "annotation_rounditem_repeat_reserved": lambda w: changed(w.item, kind="repeat"),
    "annotation_roundcriterion_once": lambda w: copied(w.asked_1),
    "annotation_roundcriterion_probability_0_to_1": lambda w: changed(
        w.asked_1, inclusion_probability=0
    ),
    "annotation_slot_number_once": lambda w: copied(w.slot_1),
    "annotation_slot_number_1_to_10": lambda w: changed(w.slot_1, number=11),
    "annotation_assignment_slot_held_once": lambda w: copied(
        w.active, slot_id=w.slot_1.pk, annotator_id=w.dan.pk
    ),
    "annotation_assignment_annotator_once": lambda w: copied(w.active, slot_id=w.free_slot.pk),
    "annotation_assignment_slot_iff_live": lambda w: changed(w.active, slot=None),
    "annotation_assignment_active_has_lease": lambda w: changed(w.active, lease_until=None),
    "annotation_assignment_submitted_has_date": lambda w: changed(w.submitted, submitted_at=None),
    "annotation_assignmentevent_kind_known": lambda w: changed(w.assignment_event, kind="lost"),
    "annotation_label_once": lambda w: copied(w.label),
    "annotation_label_value_known": lambda w: changed(w.label, value="perhaps"),
    "annotation_label_reason_only_if_cannot_tell": lambda w: changed(
        w.label, reason="not_applicable"
    ),
    "annotation_labelevent_seq_once": lambda w: copied(w.event),
    "annotation_labelevent_value_known": lambda w: changed(w.event, value="perhaps"),
    "annotation_labelevent_reason_only_if_cannot_tell": lambda w: changed(
        w.event, reason="not_applicable"
    ),
    "annotation_labeleventtext_redacted_is_blank": lambda w: changed(w.text, redacted_at=w.now),
    "annotation_labeleventtext.event_id": lambda w: copied(w.text),
    "annotation_adjudication_has_reason": lambda w: changed(w.adjudication, reason=""),
    "annotation_adjudication_value_known": lambda w: changed(w.adjudication, value="perhaps"),
    "annotation_adjudication_confidence_known": lambda w: changed(
        w.adjudication, confidence="some"
    ),
    "scoring_judge_version_unique": lambda w: copied(w.judge, digest="z" * 64),
    "scoring_judge_kind_and_mode_known": lambda w: changed(w.judge, mode="dreaming"),
    "scoring_judge.digest": lambda w: copied(w.judge, version=2),
    "scoring_run_judging_has_judge": lambda w: changed(w.run, judge=None),
    "scoring_run_status_known": lambda w: changed(w.run, status="lost"),
    "scoring_runitem_once": lambda w: copied(w.run_item),
    "scoring_runitem_leased_has_lease": lambda w: changed(w.run_item, state="leased"),
    "scoring_runitem_state_known": lambda w: changed(w.run_item, state="lost"),
    "scoring_call_settled_with_outcome": lambda w: changed(w.call, outcome="ok"),
    "scoring_call_outcome_known": lambda w: changed(w.settled, outcome="lost"),
    "scoring_verdict_once": lambda w: copied(w.verdict),
    "scoring_verdict_probability_0_to_1": lambda w: changed(w.verdict, probability=1.01),
    "scoring_split.collection_id": lambda w: copied(w.split),
    "scoring_split_share_0_to_1": lambda w: changed(w.split, dev_share=1),
    "scoring_splitmember.conversation_id": lambda w: copied(w.split_member, part="dev"),
    "scoring_splitmember_part_known": lambda w: changed(w.split_member, part="both"),
    "scoring_splitopening_once": lambda w: copied(w.opening),
    "scoring_splitopening_has_reason": lambda w: changed(w.opening, reason=""),
    "scoring_calibration.digest": lambda w: copied(w.calibration, number=2),
    "scoring_calibration_number_once": lambda w: copied(w.calibration, digest="z" * 64),
    "scoring_calibrationdecision_has_reason": lambda w: changed(w.decision, reason=""),
    "scoring_calibrationdecision_known": lambda w: changed(w.decision, decision="perhaps"),
    "scoring_scoreset_once": lambda w: copied(w.score_set),
    "scoring_release_version_unique": lambda w: copied(w.release),
    "scoring_releasechunk_once": lambda w: copied(w.chunk),
}


def _all_constraints() -> dict[str, models.BaseConstraint | models.Field]:
    found: dict[str, models.BaseConstraint | models.Field] = {}
    for model in MODELS:
        found |= {constraint.name: constraint for constraint in model._meta.constraints}
        found |= {
            f"{model._meta.db_table}.{field.column}": field
            for field in model._meta.concrete_fields
            if field.unique and not field.primary_key
        }
    return found


ALL = _all_constraints()


@pytest.fixture
def world(db: None) -> SimpleNamespace:
    made = make_world()
    connection.check_constraints()
    return made


def test_every_constraint_has_a_change_that_tries_to_break_it():
    assert set(BREAKS) == set(ALL)


def test_the_names_of_constraints_fit_postgresql_whole():
    assert [name for name in ALL if len(name.encode()) >= 63] == []


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_constraint_refuses_by_itself(world, name):
    act = BREAKS[name](world)
    guards.drop()

    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        act()

    _assert_broken(name, refusal.value)


def _assert_broken(name: str, error: IntegrityError) -> None:
    constraint, table = ALL[name], name.partition(".")[0]
    if connection.vendor == "postgresql":
        broken = error.__cause__.diag.constraint_name
        assert broken == name if "." not in name else broken.startswith(name.replace(".", "_"))
        return
    if isinstance(constraint, models.UniqueConstraint) and constraint.fields:
        [model] = [m for m in MODELS if constraint in m._meta.constraints]
        table = model._meta.db_table
        columns = [model._meta.get_field(field).column for field in constraint.fields]
        expected = "UNIQUE constraint failed: " + ", ".join(f"{table}.{c}" for c in columns)
        assert str(error) == expected
    else:
        assert str(error).endswith(name) or f"'{name}'" in str(error)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("judge", "params", {"temperature": float("nan")}),
        ("calibration", "metrics", {"macro_f1": float("nan")}),
        ("score_set", "payload", {"score": float("inf")}),
        ("split", "dev_share", float("nan")),
        ("asked_1", "inclusion_probability", float("nan")),
    ],
)
def test_no_number_in_the_database_is_nan(world, name, field, value):
    guards.drop()

    with pytest.raises(DatabaseError), transaction.atomic():
        changed(getattr(world, name), **{field: value})()


def test_a_probability_that_is_nan_is_never_stored_as_such(world):
    guards.drop()

    try:
        with transaction.atomic():
            changed(world.verdict, probability=float("nan"))()
    except DatabaseError:
        return
    world.verdict.refresh_from_db()
    assert world.verdict.probability is None


def test_every_reference_protects_what_it_points_to():
    loose = {
        f"{field.model._meta.db_table}.{field.column}"
        for model in MODELS
        for field in model._meta.concrete_fields
        if field.is_relation and field.remote_field.on_delete is not models.PROTECT
    }

    # What is nothing without its owner, and is guarded once that is in use.
    assert loose == {"corpus_rubricitem.rubric_id", "annotation_roundmember.round_id"}


@pytest.mark.django_db
def test_every_reference_is_a_foreign_key_of_the_database():
    with connection.cursor() as cursor:
        for model in MODELS:
            table = model._meta.db_table
            found = connection.introspection.get_constraints(cursor, table).values()
            for field in model._meta.concrete_fields:
                if field.is_relation:
                    target = field.related_model._meta.db_table
                    references = [
                        each["foreign_key"]
                        for each in found
                        if each["columns"] == [field.column] and each["foreign_key"]
                    ]
                    assert references == [(target, "id")], field


def test_people_with_labels_are_never_deleted(world):
    with pytest.raises(ProtectedError), transaction.atomic():
        world.user.delete()
    with pytest.raises(ProtectedError), transaction.atomic():
        world.ann.delete()
    for row in (world.user, world.ann):
        undo = transaction.savepoint()
        type(row)._base_manager.filter(pk=row.pk)._raw_delete("default")
        with pytest.raises(IntegrityError):
            connection.check_constraints()
        transaction.savepoint_rollback(undo)
    assert Annotator.objects.filter(pk=world.ann.pk, user=world.user).exists()


def test_a_lapsed_assignment_leaves_its_slot_to_somebody_else(world):
    world.active.state, world.active.slot = "lapsed", None
    world.active.save()

    copied(
        world.active,
        state="active",
        slot_id=world.slot_2.pk,
        annotator_id=world.dan.pk,
        lease_until=world.now + timedelta(hours=1),
    )()

"""One small world with a row in every table, made by the ORM alone, past all services."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from django.utils import timezone

from annotation.models import (
    Adjudication,
    Annotator,
    Assignment,
    AssignmentEvent,
    Label,
    LabelEvent,
    LabelEventText,
    Round,
    RoundCriterion,
    RoundItem,
    RoundMember,
    Slot,
)
from corpus.models import RubricItem, Subcategory
from distressbench_site.accounts.models import AuditEvent, Invitation, User
from scoring.models import (
    Calibration,
    CalibrationDecision,
    Call,
    Judge,
    Release,
    ReleaseChunk,
    Run,
    RunItem,
    ScoreSet,
    Split,
    SplitMember,
    SplitOpening,
    Verdict,
)
from tests.factories import (
    make_collection,
    make_conversation,
    make_reply,
    make_respondent,
    make_rubric,
)


def make_world() -> SimpleNamespace:
    """Make the world; its rows are attributes."""
    w = SimpleNamespace(now=timezone.now())
    _people(w)
    _corpus(w)
    _round(w)
    _labels(w)
    _judging(w)
    _results(w)
    return w


def _people(w: Any) -> None:
    w.user = User.objects.create(email="ada@example.org")
    w.other_user = User.objects.create(email="ben@example.org")
    w.invitation = Invitation.objects.create(
        email="new@example.org", token_digest="i" * 64, invited_by=w.user, expires_at=w.now
    )
    w.audit = AuditEvent.objects.create(actor=w.user, action="looked")


def _corpus(w: Any) -> None:
    w.collection = make_collection()
    w.elsewhere = make_collection()
    w.dimension, w.spare_dimension = w.collection.dimensions.all()[:2]
    w.subcategory = w.collection.subcategories.get()
    w.spare_subcategory = Subcategory.objects.create(
        collection=w.collection, slug="spare", name="Spare", position=9
    )
    recognition = ["recognition"] * 3
    w.conversation = make_conversation(w.collection, dimensions=recognition)
    w.second = make_conversation(w.collection, dimensions=recognition)
    w.foreign = make_conversation(w.elsewhere)
    w.rubric = w.conversation.rubrics.get()
    w.c1, w.c2, w.c3 = w.conversation.criteria.all()
    w.rubric_item = w.rubric.items.first()
    w.draft = make_rubric(w.conversation, ["New one.", "New two."], publish=False)
    w.draft_item, w.draft_item_2 = w.draft.items.all()
    w.draft.items.filter(pk=w.draft_item_2.pk).delete()
    w.free_criterion = w.draft_item_2.criterion
    w.empty_draft = make_rubric(w.second, [], publish=False)
    w.model = make_respondent()
    w.model_2 = make_respondent()
    w.reply = make_reply(w.conversation, w.model)
    w.reply_2 = make_reply(w.conversation, w.model_2)
    w.second_reply = make_reply(w.second, w.model)
    w.foreign_reply = make_reply(w.foreign, w.model)


def _round(w: Any) -> None:
    w.annotators = [Annotator.objects.create(pseudonym=f"clinician-{n}") for n in range(4)]
    w.ann, w.ben, w.cleo, w.dan = w.annotators
    Annotator.objects.filter(pk=w.ann.pk).update(user=w.user)
    w.ann.refresh_from_db()
    w.round = Round.objects.create(collection=w.collection, name="First round", status="open")
    w.member = RoundMember.objects.create(round=w.round, annotator=w.ann)
    w.item = RoundItem.objects.create(round=w.round, reply=w.reply, rubric=w.rubric)
    w.asked_1, w.asked_2 = (
        RoundCriterion.objects.create(round_item=w.item, criterion=criterion)
        for criterion in (w.c1, w.c2)
    )
    w.slot_1, w.slot_2, w.free_slot = (
        Slot.objects.create(round_item=w.item, number=number) for number in (1, 2, 3)
    )
    w.item_2 = RoundItem.objects.create(
        round=w.round, reply=w.reply_2, rubric=w.rubric, reserved_for=w.ben
    )
    w.asked_elsewhere = RoundCriterion.objects.create(round_item=w.item_2, criterion=w.c1)
    w.slot_elsewhere = Slot.objects.create(round_item=w.item_2, number=1)
    w.bare_item = RoundItem.objects.create(
        round=w.round, reply=w.reply_2, rubric=w.rubric, occurrence=1
    )


def _labels(w: Any) -> None:
    lease = w.now + timedelta(hours=1)
    w.submitted, w.active = (
        Assignment.objects.create(round_item=w.item, slot=slot, annotator=who, lease_until=lease)
        for slot, who in ((w.slot_1, w.ann), (w.slot_2, w.ben))
    )
    w.skipped = Assignment.objects.create(round_item=w.item, annotator=w.cleo, state="skipped")
    w.assignment_event = AssignmentEvent.objects.create(assignment=w.submitted, kind="claimed")
    w.event = LabelEvent.objects.create(
        assignment=w.submitted, criterion=w.c1, client="a", seq=1, value="met", comment_digest="d"
    )
    w.text = LabelEventText.objects.create(event=w.event, comment="A careful reply.")
    w.redacted = LabelEventText.objects.create(
        event=LabelEvent.objects.create(
            assignment=w.submitted, criterion=w.c2, client="a", seq=2, value="met"
        ),
        redacted_at=w.now,
    )
    w.label, w.label_2 = (
        Label.objects.create(assignment=w.submitted, criterion=criterion, value="met")
        for criterion in (w.c1, w.c2)
    )
    w.submitted.state, w.submitted.submitted_at = "submitted", w.now
    w.submitted.save()
    w.open_label = Label.objects.create(assignment=w.active, criterion=w.c1, value="not_met")
    w.adjudication = Adjudication.objects.create(
        round=w.round, reply=w.reply, criterion=w.c1, value="met", reason="clear", adjudicator=w.dan
    )


def _judging(w: Any) -> None:
    w.judge = Judge.objects.create(name="calm", version=1, digest="a" * 64)
    w.whole = Judge.objects.create(name="whole", version=1, mode="rubric", digest="b" * 64)
    w.run = Run.objects.create(collection=w.collection, judge=w.judge)
    w.empty_run = Run.objects.create(collection=w.collection, judge=w.judge)
    where = {"run": w.run, "respondent": w.model}
    w.run_item = RunItem.objects.create(conversation=w.conversation, reply=w.reply, **where)
    w.second_run_item = RunItem.objects.create(conversation=w.second, **where)
    w.call = Call.objects.create(run_item=w.run_item, request_digest="q")
    w.settled = Call.objects.create(
        run_item=w.run_item, request_digest="q", outcome="ok", settled_at=w.now
    )
    w.verdict = Verdict.objects.create(
        judge=w.judge, reply=w.reply, criterion=w.c1, met=True, call=w.settled
    )


def _results(w: Any) -> None:
    w.split = Split.objects.create(collection=w.collection, seed=1, dev_share=0.3)
    w.split_member = SplitMember.objects.create(
        split=w.split, conversation=w.conversation, part="test"
    )
    w.opening = SplitOpening.objects.create(split=w.split, number=1, reason="to measure")
    w.calibration = Calibration.objects.create(
        judge=w.judge,
        split=w.split,
        number=1,
        metrics={},
        labels_digest="l",
        label_events_used=2,
        digest="c" * 64,
    )
    w.decision = CalibrationDecision.objects.create(
        calibration=w.calibration, decision="approve", reason="good enough"
    )
    w.score_set = ScoreSet.objects.create(
        collection=w.collection, judge=w.judge, ruler="r", watermark="w", payload={}
    )
    w.release = Release.objects.create(
        name="first", version=1, collection=w.collection, manifest={}, sha256="s" * 64, size=3
    )
    w.chunk = ReleaseChunk.objects.create(release=w.release, number=1, data=b"abc")


def unused_rubric_item(w: Any, **changes: Any) -> RubricItem:
    """Return an unsaved item that fits the draft."""
    values = {"rubric": w.draft, "criterion": w.free_criterion, "dimension": w.dimension}
    return RubricItem(**{**values, "weight": 2, "position": 7, **changes})

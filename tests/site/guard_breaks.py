"""For each guard the changes that it must refuse, told as rows and values of the small world."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Model

from annotation.models import (
    Adjudication,
    Assignment,
    Label,
    LabelEvent,
    RoundCriterion,
    RoundItem,
)
from corpus.models import Conversation, Criterion
from scoring.models import ReleaseChunk, RunItem, SplitMember, Verdict
from tests.site.world import unused_rubric_item

World = Any
# An update that changes the identity of a row; any free number serves.
FREE = 987_654


@dataclass(frozen=True)
class Insert:
    """An unsaved row that must not come in."""

    row: Callable[[World], Model]


@dataclass(frozen=True)
class Update:
    """A row that stands, and changes that are refused one by one."""

    row: Callable[[World], Model]
    changes: Callable[[World], dict[str, Any]]
    # Changes that are refused only together, made in one go.
    together: Callable[[World], dict[str, Any]] = lambda w: {}


@dataclass(frozen=True)
class Delete:
    """A row that must stay; the ORM may know how to take away what hangs on it first."""

    row: Callable[[World], Model]
    raw_only: bool = False


Break = Insert | Update | Delete


def _append_only(table: str, row: Callable[[World], Model], **changes: Any) -> dict[str, Break]:
    return {
        f"{table}_no_update": Update(row, lambda w: changes),
        f"{table}_no_delete": Delete(row),
    }


def _assignment(w: World, **changes: Any) -> Assignment:
    values = {"round_item": w.item, "slot": w.free_slot, "annotator": w.dan}
    values["lease_until"] = w.now + timedelta(hours=1)
    return Assignment(**{**values, **changes})


def _verdict(w: World, **changes: Any) -> Verdict:
    values = {"judge": w.judge, "reply": w.reply, "criterion": w.c2, "met": True}
    return Verdict(**{**values, **changes})


def _event(w: World, **changes: Any) -> LabelEvent:
    values = {"assignment": w.active, "criterion": w.c2, "client": "b", "seq": 9, "value": "met"}
    return LabelEvent(**{**values, **changes})


def _conversation(w: World, **changes: Any) -> Conversation:
    values = {"collection": w.collection, "key": "new", "turns": [], "content_digest": "n"}
    return Conversation(**{**values, "multi_turn": False, **changes})


BREAKS: dict[str, Break] = {
    **_append_only("accounts_auditevent", lambda w: w.audit, action="slept", actor_id=None),
    "corpus_dimension_immutable": Update(
        lambda w: w.dimension, lambda w: {"id": FREE, "collection_id": w.elsewhere.pk}
    ),
    "corpus_dimension_undeletable": Delete(lambda w: w.dimension),
    "corpus_subcategory_immutable": Update(
        lambda w: w.subcategory, lambda w: {"id": FREE, "collection_id": w.elsewhere.pk}
    ),
    "corpus_subcategory_undeletable": Delete(lambda w: w.subcategory),
    "corpus_conversation_immutable": Update(
        lambda w: w.second,
        lambda w: {
            "id": FREE,
            "collection_id": w.elsewhere.pk,
            "key": "other",
            "locale": "fr",
            "turns": [{"role": "user", "text": "Something else."}],
            "content_digest": "other",
            "multi_turn": True,
            "authors": ["somebody"],
            "source": {"canary": "gone"},
            "supersedes_id": w.conversation.pk,
        },
    ),
    "corpus_conversation_undeletable": Delete(lambda w: w.second),
    "corpus_conversation_insert_subcategory": Insert(
        lambda w: _conversation(w, subcategory=w.elsewhere.subcategories.get())
    ),
    "corpus_conversation_update_subcategory": Update(
        lambda w: w.second, lambda w: {"subcategory_id": w.elsewhere.subcategories.get().pk}
    ),
    "corpus_conversation_insert_supersedes": Insert(
        lambda w: _conversation(w, supersedes=w.foreign)
    ),
    "corpus_criterion_immutable": Update(
        lambda w: w.free_criterion,
        lambda w: {
            "id": FREE,
            "conversation_id": w.second.pk,
            "key": "other",
            "text": "Something else.",
            "same_meaning_as_id": w.c1.pk,
            "reason": "a typo",
            "source": {"n": 1},
        },
    ),
    "corpus_criterion_undeletable": Delete(lambda w: w.free_criterion),
    "corpus_criterion_insert_restates": Insert(
        lambda w: Criterion(
            conversation=w.conversation,
            key="new",
            text="New.",
            same_meaning_as=w.second.criteria.first(),
            reason="a typo",
        )
    ),
    "corpus_rubric_immutable": Update(
        lambda w: w.rubric,
        lambda w: {
            "id": FREE,
            "conversation_id": w.second.pk,
            "version": 7,
            "published_at": w.now + timedelta(days=1),
            "author": "somebody",
            "change_note": "another",
        },
    ),
    "corpus_rubric_status_forward": Update(
        lambda w: w.rubric,
        lambda w: {},
        together=lambda w: {"status": "draft", "published_at": None},
    ),
    "corpus_rubric_conversation_fixed": Update(
        lambda w: w.draft, lambda w: {"id": FREE, "conversation_id": w.foreign.pk}
    ),
    "corpus_rubric_undeletable": Delete(lambda w: w.rubric),
    "corpus_rubric_delete_empty": Delete(lambda w: w.draft, raw_only=True),
    "corpus_rubricitem_insert_draft_only": Insert(lambda w: unused_rubric_item(w, rubric=w.rubric)),
    "corpus_rubricitem_update_draft_only": Update(
        lambda w: w.rubric_item,
        lambda w: {
            "weight": 20,
            "position": 19,
            "dimension_id": w.spare_dimension.pk,
            "rubric_id": w.draft.pk,
        },
    ),
    "corpus_rubricitem_delete_draft_only": Delete(lambda w: w.rubric_item),
    "corpus_rubricitem_insert_matches": Insert(
        lambda w: unused_rubric_item(w, criterion=w.second.criteria.first())
    ),
    "corpus_rubricitem_update_matches": Update(
        lambda w: w.draft_item,
        lambda w: {
            "criterion_id": w.second.criteria.first().pk,
            "dimension_id": w.elsewhere.dimensions.first().pk,
            "rubric_id": w.empty_draft.pk,
        },
    ),
    "corpus_reply_immutable": Update(
        lambda w: w.second_reply,
        lambda w: {
            "id": FREE,
            "conversation_id": w.foreign.pk,
            "respondent_id": w.model_2.pk,
            "sample": 4,
            "turns": ["Something else."],
            "digest": "other",
            "outcome": "refused",
            "finish_reason": "stop",
            "returned_model": "another",
            "authors": ["somebody"],
            "source": {"n": 1},
            "replied_on": date(2026, 1, 2),
            "created_at": w.now + timedelta(days=1),
        },
    ),
    "corpus_reply_undeletable": Delete(lambda w: w.second_reply),
    "annotation_round_collection_fixed": Update(
        lambda w: w.round, lambda w: {"id": FREE, "collection_id": w.elsewhere.pk}
    ),
    "annotation_round_undeletable": Delete(lambda w: w.round),
    "annotation_rounditem_insert_matches": Insert(
        lambda w: RoundItem(round=w.round, reply=w.reply, rubric=w.draft, occurrence=5)
    ),
    "annotation_rounditem_immutable": Update(
        lambda w: w.item_2,
        lambda w: {
            "id": FREE,
            "round_id": FREE,
            "reply_id": w.second_reply.pk,
            "rubric_id": w.second.rubrics.first().pk,
            "kind": "gold",
            "occurrence": 8,
            "reserved_for_id": w.dan.pk,
        },
    ),
    "annotation_rounditem_undeletable": Delete(lambda w: w.item_2),
    "annotation_roundcriterion_insert_matches": Insert(
        lambda w: RoundCriterion(round_item=w.bare_item, criterion=w.free_criterion)
    ),
    "annotation_roundcriterion_immutable": Update(
        lambda w: w.asked_1,
        lambda w: {
            "id": FREE,
            "round_item_id": w.bare_item.pk,
            "criterion_id": w.c3.pk,
            "inclusion_probability": 0.5,
        },
    ),
    "annotation_roundcriterion_insert_in_time": Insert(
        lambda w: RoundCriterion(round_item=w.item, criterion=w.c3)
    ),
    "annotation_roundcriterion_undeletable": Delete(lambda w: w.asked_1),
    "annotation_slot_immutable": Update(
        lambda w: w.slot_1, lambda w: {"id": FREE, "round_item_id": w.bare_item.pk, "number": 9}
    ),
    "annotation_slot_undeletable": Delete(lambda w: w.slot_1),
    "annotation_assignment_insert_slot": Insert(lambda w: _assignment(w, slot=w.slot_elsewhere)),
    "annotation_assignment_update_slot": Update(
        lambda w: w.active, lambda w: {"slot_id": w.slot_elsewhere.pk}
    ),
    "annotation_assignment_insert_reserved": Insert(
        lambda w: _assignment(w, round_item=w.item_2, slot=w.slot_elsewhere)
    ),
    "annotation_assignment_immutable": Update(
        lambda w: w.skipped,
        lambda w: {"id": FREE, "round_item_id": w.bare_item.pk, "annotator_id": w.dan.pk},
    ),
    "annotation_assignment_born_active": Insert(
        lambda w: _assignment(w, state="submitted", submitted_at=w.now)
    ),
    "annotation_assignment_complete": Update(
        lambda w: w.active,
        lambda w: {},
        together=lambda w: {"state": "submitted", "submitted_at": w.now},
    ),
    "annotation_assignment_undeletable": Delete(lambda w: w.skipped),
    **_append_only("annotation_assignmentevent", lambda w: w.assignment_event, kind="skipped"),
    "annotation_label_insert_asked": Insert(
        lambda w: Label(assignment=w.active, criterion=w.c3, value="met")
    ),
    # Its criterion has a label already, which comes in first and refuses nothing by itself here.
    "annotation_label_insert_open": Insert(
        lambda w: Label(assignment=w.submitted, criterion=w.c1, value="met")
    ),
    "annotation_label_update_open": Update(
        lambda w: w.label,
        lambda w: {
            "value": "not_met",
            "quotes": [{"turn": 0, "start": 0, "text": "S"}],
            "comment": "Changed my mind.",
        },
        together=lambda w: {"value": "cannot_tell", "reason": "not_applicable"},
    ),
    "annotation_label_insert_reason": Insert(
        lambda w: Label(assignment=w.active, criterion=w.c2, reason="not_applicable")
    ),
    "annotation_label_update_reason": Update(
        lambda w: w.open_label,
        lambda w: {},
        together=lambda w: {"value": None, "reason": "not_applicable"},
    ),
    "annotation_label_immutable": Update(
        lambda w: w.open_label,
        lambda w: {"id": FREE, "assignment_id": w.skipped.pk, "criterion_id": w.c2.pk},
    ),
    "annotation_label_undeletable": Delete(lambda w: w.open_label),
    "annotation_labelevent_insert_asked": Insert(lambda w: _event(w, criterion=w.c3)),
    "annotation_labelevent_insert_open": Insert(lambda w: _event(w, assignment=w.submitted)),
    "annotation_labelevent_insert_reason": Insert(
        lambda w: _event(w, value=None, reason="not_applicable")
    ),
    **_append_only("annotation_labelevent", lambda w: w.event, value="not_met", seq=77),
    "annotation_labeleventtext_only_blanked": Update(
        lambda w: w.text, lambda w: {"comment": "Rewritten.", "event_id": w.redacted.event_id}
    ),
    "annotation_labeleventtext_undeletable": Delete(lambda w: w.text),
    "annotation_adjudication_insert_asked": Insert(
        lambda w: Adjudication(
            round=w.round,
            reply=w.reply,
            criterion=w.c3,
            value="met",
            reason="clear",
            adjudicator=w.dan,
        )
    ),
    **_append_only("annotation_adjudication", lambda w: w.adjudication, value="not_met"),
    **_append_only("scoring_judge", lambda w: w.whole, prompt="Be kind.", mode="criterion"),
    "scoring_run_immutable": Update(
        lambda w: w.run,
        lambda w: {
            "id": FREE,
            "kind": "replies",
            "collection_id": w.elsewhere.pk,
            "judge_id": w.whole.pk,
        },
    ),
    "scoring_run_undeletable": Delete(lambda w: w.run),
    "scoring_runitem_insert_matches": Insert(
        lambda w: RunItem(run=w.run, conversation=w.foreign, respondent=w.model)
    ),
    "scoring_runitem_update_matches": Update(
        lambda w: w.second_run_item, lambda w: {"reply_id": w.reply.pk}
    ),
    "scoring_runitem_immutable": Update(
        lambda w: w.run_item,
        lambda w: {
            "id": FREE,
            "run_id": w.empty_run.pk,
            "conversation_id": w.second.pk,
            "respondent_id": w.model_2.pk,
            "sample": 3,
        },
    ),
    "scoring_runitem_reply_fixed": Update(lambda w: w.run_item, lambda w: {"reply_id": None}),
    "scoring_runitem_undeletable": Delete(lambda w: w.run_item),
    "scoring_call_settled_once": Update(
        lambda w: w.settled, lambda w: {"raw": "Something else.", "outcome": "cut", "cost": "1.5"}
    ),
    "scoring_call_undeletable": Delete(lambda w: w.call),
    "scoring_verdict_insert_matches": Insert(
        lambda w: _verdict(w, criterion=w.second.criteria.first())
    ),
    "scoring_verdict_insert_call": Insert(lambda w: _verdict(w, call=w.settled, reply=w.reply_2)),
    "scoring_verdict_insert_key": Insert(lambda w: _verdict(w, criteria_digest="d")),
    **_append_only("scoring_verdict", lambda w: w.verdict, met=False, explanation="No."),
    **_append_only("scoring_split", lambda w: w.split, seed=9),
    "scoring_splitmember_insert_matches": Insert(
        lambda w: SplitMember(split=w.split, conversation=w.foreign, part="dev")
    ),
    **_append_only("scoring_splitmember", lambda w: w.split_member, part="dev"),
    **_append_only("scoring_splitopening", lambda w: w.opening, reason="another", targets={"a": 1}),
    **_append_only("scoring_calibration", lambda w: w.calibration, metrics={"macro_f1": 1}),
    **_append_only("scoring_calibrationdecision", lambda w: w.decision, decision="reject"),
    **_append_only("scoring_release", lambda w: w.release, sha256="t" * 64, size=4),
    "scoring_releasechunk_insert_fits": Insert(
        lambda w: ReleaseChunk(release=w.release, number=2, data=b"d")
    ),
    **_append_only("scoring_releasechunk", lambda w: w.chunk, data=b"xyz"),
}

# More ways past the same guards, each once a real gap.
MORE: list[tuple[str, Break]] = [
    # A draft's item moved into the published rubric of the same conversation.
    (
        "corpus_rubricitem_update_draft_only",
        Update(lambda w: w.draft_item, lambda w: {"rubric_id": w.rubric.pk}),
    ),
    (
        "annotation_rounditem_insert_matches",
        Insert(lambda w: RoundItem(round=w.round, reply=w.foreign_reply, rubric=w.rubric)),
    ),
    (
        "annotation_rounditem_insert_matches",
        Insert(
            lambda w: RoundItem(
                round=w.round, reply=w.foreign_reply, rubric=w.foreign.rubrics.get()
            )
        ),
    ),
    (
        "scoring_runitem_insert_matches",
        Insert(
            lambda w: RunItem(
                run=w.run, conversation=w.second, respondent=w.model_2, reply=w.second_reply
            )
        ),
    ),
    ("scoring_verdict_insert_key", Insert(lambda w: _verdict(w, judge=w.whole))),
    (
        "scoring_verdict_insert_call",
        Insert(lambda w: _verdict(w, call=w.settled, judge=w.whole, criteria_digest="d")),
    ),
    (
        "scoring_call_settled_once",
        Update(
            lambda w: w.call,
            lambda w: {
                "id": FREE,
                "run_item_id": w.second_run_item.pk,
                "criterion_id": w.c1.pk,
                "draw": 3,
                "request_digest": "other",
                "attempt": 4,
                "sent_at": w.now + timedelta(days=1),
            },
        ),
    ),
    (
        "annotation_labeleventtext_only_blanked",
        Update(lambda w: w.redacted, lambda w: {"redacted_at": None, "comment": "Back again."}),
    ),
    (
        "annotation_assignment_complete",
        Update(
            lambda w: _with_cannot_tell(w),
            lambda w: {},
            together=lambda w: {"state": "submitted", "submitted_at": w.now},
        ),
    ),
    (
        "corpus_rubric_status_forward",
        Update(lambda w: w.empty_draft, lambda w: {"status": "retired"}),
    ),
]


def _with_cannot_tell(w: World) -> Assignment:
    """Answer everything, once with a cannot tell that gives no reason."""
    Label.objects.create(assignment=w.active, criterion=w.c2, value="cannot_tell")
    assert isinstance(w.active, Assignment)
    return w.active

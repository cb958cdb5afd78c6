"""What the database guarantees about labels, beyond constraints."""

from distressbench_site.accounts.guards import Guard, append_only, immutable, undeletable

_ITEM_ELSEWHERE = (
    "NOT EXISTS (SELECT 1 FROM corpus_rubric r JOIN corpus_reply p"
    " ON p.conversation_id = r.conversation_id JOIN corpus_conversation c"
    " ON c.id = p.conversation_id JOIN annotation_round n ON n.collection_id = c.collection_id"
    " WHERE r.id = NEW.rubric_id AND p.id = NEW.reply_id AND n.id = NEW.round_id"
    " AND r.status <> 'draft')"
)
_ASKED_ELSEWHERE = (
    "NOT EXISTS (SELECT 1 FROM annotation_rounditem i JOIN corpus_rubricitem r"
    " ON r.rubric_id = i.rubric_id WHERE i.id = NEW.round_item_id"
    " AND r.criterion_id = NEW.criterion_id)"
)
_SLOT_ELSEWHERE = (
    "NEW.slot_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM annotation_slot s"
    " WHERE s.id = NEW.slot_id AND s.round_item_id = NEW.round_item_id)"
)
_RESERVED = (
    "EXISTS (SELECT 1 FROM annotation_rounditem i WHERE i.id = NEW.round_item_id"
    " AND i.reserved_for_id <> NEW.annotator_id)"
)
# A check constraint lets a row pass where it comes out as NULL, as it does without a value.
_REASON_WITHOUT_ANSWER = "NEW.value IS NULL AND NEW.reason <> ''"
_NOT_ASKED = (
    "NOT EXISTS (SELECT 1 FROM annotation_assignment a JOIN annotation_roundcriterion q"
    " ON q.round_item_id = a.round_item_id WHERE a.id = NEW.assignment_id"
    " AND q.criterion_id = NEW.criterion_id)"
)
_SUBMITTED = (
    "EXISTS (SELECT 1 FROM annotation_assignment a WHERE a.id = NEW.assignment_id"
    " AND a.state = 'submitted')"
)
_INCOMPLETE = (
    "NEW.state = 'submitted' AND EXISTS (SELECT 1 FROM annotation_roundcriterion q"
    " LEFT JOIN annotation_label l ON l.assignment_id = NEW.id"
    " AND l.criterion_id = q.criterion_id WHERE q.round_item_id = NEW.round_item_id"
    " AND (l.value IS NULL OR (l.value = 'cannot_tell' AND l.reason = '')))"
)
_ADJUDICATION_ELSEWHERE = (
    "NOT EXISTS (SELECT 1 FROM annotation_rounditem i JOIN annotation_roundcriterion q"
    " ON q.round_item_id = i.id WHERE i.round_id = NEW.round_id"
    " AND i.reply_id = NEW.reply_id AND q.criterion_id = NEW.criterion_id)"
)

GUARDS = [
    Guard(
        "annotation_round_collection_fixed",
        "annotation_round",
        "update",
        "a round stays in its collection",
        "NEW.id {differs} OLD.id OR NEW.collection_id {differs} OLD.collection_id",
    ),
    undeletable(
        "annotation_round",
        "a round with items",
        "EXISTS (SELECT 1 FROM annotation_rounditem i WHERE i.round_id = OLD.id)",
    ),
    Guard(
        "annotation_rounditem_insert_matches",
        "annotation_rounditem",
        "insert",
        "the reply, its published rubric and the round do not belong together",
        _ITEM_ELSEWHERE,
    ),
    immutable(
        "annotation_rounditem",
        ["id", "round_id", "reply_id", "rubric_id", "kind", "occurrence", "reserved_for_id"],
        "an item of a round",
    ),
    undeletable(
        "annotation_rounditem",
        "an item in use",
        "EXISTS (SELECT 1 FROM annotation_roundcriterion q WHERE q.round_item_id = OLD.id)"
        " OR EXISTS (SELECT 1 FROM annotation_slot s WHERE s.round_item_id = OLD.id)",
    ),
    Guard(
        "annotation_roundcriterion_insert_matches",
        "annotation_roundcriterion",
        "insert",
        "the criterion is not in the rubric of the item",
        _ASKED_ELSEWHERE,
    ),
    immutable(
        "annotation_roundcriterion",
        ["id", "round_item_id", "criterion_id", "inclusion_probability"],
        "what is asked of an item",
    ),
    Guard(
        "annotation_roundcriterion_insert_in_time",
        "annotation_roundcriterion",
        "insert",
        "nothing more is asked of an item that somebody has submitted",
        "EXISTS (SELECT 1 FROM annotation_assignment a"
        " WHERE a.round_item_id = NEW.round_item_id AND a.state = 'submitted')",
    ),
    undeletable(
        "annotation_roundcriterion",
        "what was asked of somebody",
        "EXISTS (SELECT 1 FROM annotation_assignment a WHERE a.round_item_id = OLD.round_item_id)",
    ),
    immutable("annotation_slot", ["id", "round_item_id", "number"], "a slot"),
    undeletable(
        "annotation_slot",
        "a slot that somebody holds",
        "EXISTS (SELECT 1 FROM annotation_assignment a WHERE a.slot_id = OLD.id)",
    ),
    Guard(
        "annotation_assignment_insert_slot",
        "annotation_assignment",
        "insert",
        "the slot belongs to another item",
        _SLOT_ELSEWHERE,
    ),
    Guard(
        "annotation_assignment_update_slot",
        "annotation_assignment",
        "update",
        "the slot belongs to another item",
        _SLOT_ELSEWHERE,
    ),
    Guard(
        "annotation_assignment_insert_reserved",
        "annotation_assignment",
        "insert",
        "the item is reserved for somebody else",
        _RESERVED,
    ),
    immutable("annotation_assignment", ["id", "round_item_id", "annotator_id"], "whose work it is"),
    Guard(
        "annotation_assignment_born_active",
        "annotation_assignment",
        "insert",
        "an assignment cannot start as submitted",
        "NEW.state = 'submitted'",
    ),
    Guard(
        "annotation_assignment_complete",
        "annotation_assignment",
        "update",
        "an assignment with an open criterion cannot be submitted",
        _INCOMPLETE,
    ),
    undeletable("annotation_assignment", "an assignment"),
    *append_only("annotation_assignmentevent", "the history of an assignment"),
    Guard(
        "annotation_label_insert_asked",
        "annotation_label",
        "insert",
        "this criterion is not asked of this reply",
        _NOT_ASKED,
    ),
    Guard(
        "annotation_label_insert_open",
        "annotation_label",
        "insert",
        "submitted labels change only after re-opening",
        _SUBMITTED,
    ),
    Guard(
        "annotation_label_update_open",
        "annotation_label",
        "update",
        "submitted labels change only after re-opening",
        # Blanking a comment is the one change that an audited redaction makes.
        f"(NEW.value {{differs}} OLD.value OR NEW.reason {{differs}} OLD.reason"
        f" OR NEW.quotes {{differs}} OLD.quotes"
        f" OR (NEW.comment {{differs}} OLD.comment AND NEW.comment <> '')) AND {_SUBMITTED}",
    ),
    Guard(
        "annotation_label_insert_reason",
        "annotation_label",
        "insert",
        "a reason belongs to the answer cannot tell",
        _REASON_WITHOUT_ANSWER,
    ),
    Guard(
        "annotation_label_update_reason",
        "annotation_label",
        "update",
        "a reason belongs to the answer cannot tell",
        _REASON_WITHOUT_ANSWER,
    ),
    immutable("annotation_label", ["id", "assignment_id", "criterion_id"], "what a label answers"),
    undeletable("annotation_label", "a label"),
    Guard(
        "annotation_labelevent_insert_asked",
        "annotation_labelevent",
        "insert",
        "this criterion is not asked of this reply",
        _NOT_ASKED,
    ),
    Guard(
        "annotation_labelevent_insert_open",
        "annotation_labelevent",
        "insert",
        "submitted labels change only after re-opening",
        _SUBMITTED,
    ),
    Guard(
        "annotation_labelevent_insert_reason",
        "annotation_labelevent",
        "insert",
        "a reason belongs to the answer cannot tell",
        _REASON_WITHOUT_ANSWER,
    ),
    *append_only("annotation_labelevent", "the log of labels"),
    Guard(
        "annotation_labeleventtext_only_blanked",
        "annotation_labeleventtext",
        "update",
        "a comment can be redacted once and not be rewritten",
        "NEW.event_id {differs} OLD.event_id OR OLD.redacted_at IS NOT NULL"
        " OR NEW.redacted_at IS NULL OR NEW.comment <> ''",
    ),
    undeletable("annotation_labeleventtext", "a comment"),
    Guard(
        "annotation_adjudication_insert_asked",
        "annotation_adjudication",
        "insert",
        "this unit is not asked in this round",
        _ADJUDICATION_ELSEWHERE,
    ),
    *append_only("annotation_adjudication", "an adjudication"),
]

"""What the database guarantees about the corpus, beyond constraints."""

from distressbench_site.accounts.guards import Event, Guard, immutable, undeletable

_NOT_A_DRAFT = (
    "(SELECT r.status FROM corpus_rubric r WHERE r.id = {row}.rubric_id) {{differs}} 'draft'"
)


def _draft_only(event: Event, *rows: str) -> Guard:
    return Guard(
        f"corpus_rubricitem_{event}_draft_only",
        "corpus_rubricitem",
        event,
        "a published rubric never changes",
        " OR ".join(_NOT_A_DRAFT.format(row=row) for row in rows),
    )


def _item_matches(event: Event) -> Guard:
    return Guard(
        f"corpus_rubricitem_{event}_matches",
        "corpus_rubricitem",
        event,
        "criterion, dimension and rubric belong to different conversations or collections",
        "NOT EXISTS (SELECT 1 FROM corpus_rubric r"
        " JOIN corpus_conversation c ON c.id = r.conversation_id"
        " JOIN corpus_criterion k ON k.conversation_id = c.id"
        " JOIN corpus_dimension d ON d.collection_id = c.collection_id"
        " WHERE r.id = NEW.rubric_id AND k.id = NEW.criterion_id AND d.id = NEW.dimension_id)",
    )


_SUBCATEGORY_ELSEWHERE = (
    "NEW.subcategory_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM corpus_subcategory s"
    " WHERE s.id = NEW.subcategory_id AND s.collection_id = NEW.collection_id)"
)
_SUPERSEDES_ELSEWHERE = (
    "NEW.supersedes_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM corpus_conversation o"
    " WHERE o.id = NEW.supersedes_id AND o.collection_id = NEW.collection_id)"
)

GUARDS = [
    immutable("corpus_dimension", ["id", "collection_id"], "the collection of a dimension"),
    undeletable(
        "corpus_dimension",
        "a dimension in use",
        "EXISTS (SELECT 1 FROM corpus_rubricitem i WHERE i.dimension_id = OLD.id)",
    ),
    immutable("corpus_subcategory", ["id", "collection_id"], "the collection of a subcategory"),
    undeletable(
        "corpus_subcategory",
        "a subcategory in use",
        "EXISTS (SELECT 1 FROM corpus_conversation c WHERE c.subcategory_id = OLD.id)",
    ),
    immutable(
        "corpus_conversation",
        [
            "id",
            "collection_id",
            "key",
            "locale",
            "turns",
            "content_digest",
            "multi_turn",
            "authors",
            "source",
            "supersedes_id",
        ],
        "the content of a conversation",
    ),
    undeletable("corpus_conversation", "a conversation"),
    Guard(
        "corpus_conversation_insert_subcategory",
        "corpus_conversation",
        "insert",
        "the subcategory belongs to another collection",
        _SUBCATEGORY_ELSEWHERE,
    ),
    Guard(
        "corpus_conversation_update_subcategory",
        "corpus_conversation",
        "update",
        "the subcategory belongs to another collection",
        _SUBCATEGORY_ELSEWHERE,
    ),
    Guard(
        "corpus_conversation_insert_supersedes",
        "corpus_conversation",
        "insert",
        "the superseded conversation belongs to another collection",
        _SUPERSEDES_ELSEWHERE,
    ),
    immutable(
        "corpus_criterion",
        ["id", "conversation_id", "key", "text", "same_meaning_as_id", "reason", "source"],
        "a criterion",
    ),
    undeletable("corpus_criterion", "a criterion"),
    Guard(
        "corpus_criterion_insert_restates",
        "corpus_criterion",
        "insert",
        "the restated criterion belongs to another conversation",
        "NEW.same_meaning_as_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM corpus_criterion o"
        " WHERE o.id = NEW.same_meaning_as_id AND o.conversation_id = NEW.conversation_id)",
    ),
    immutable(
        "corpus_rubric",
        ["id", "conversation_id", "version", "published_at", "author", "change_note"],
        "a published rubric",
        "OLD.status <> 'draft'",
    ),
    Guard(
        "corpus_rubric_status_forward",
        "corpus_rubric",
        "update",
        "a rubric goes from draft to published to retired and never back",
        "NOT (OLD.status = NEW.status OR (OLD.status = 'draft' AND NEW.status = 'published')"
        " OR (OLD.status = 'published' AND NEW.status = 'retired'))",
    ),
    Guard(
        "corpus_rubric_conversation_fixed",
        "corpus_rubric",
        "update",
        "a rubric stays with its conversation",
        "NEW.id {differs} OLD.id OR NEW.conversation_id {differs} OLD.conversation_id",
    ),
    undeletable("corpus_rubric", "a published rubric", "OLD.status <> 'draft'"),
    Guard(
        "corpus_rubric_delete_empty",
        "corpus_rubric",
        "delete",
        "a draft is deleted after its items",
        "EXISTS (SELECT 1 FROM corpus_rubricitem i WHERE i.rubric_id = OLD.id)",
    ),
    _draft_only("insert", "NEW"),
    _draft_only("update", "OLD", "NEW"),
    _draft_only("delete", "OLD"),
    _item_matches("insert"),
    _item_matches("update"),
    immutable(
        "corpus_reply",
        [
            "id",
            "conversation_id",
            "respondent_id",
            "sample",
            "turns",
            "digest",
            "outcome",
            "finish_reason",
            "returned_model",
            "authors",
            "source",
            "replied_on",
            "created_at",
        ],
        "a reply",
    ),
    undeletable("corpus_reply", "a reply"),
]

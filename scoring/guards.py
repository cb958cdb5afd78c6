"""What the database guarantees about verdicts and calibrations, beyond constraints."""

from distressbench_site.accounts.guards import Event, Guard, append_only, immutable, undeletable

_VERDICT_ELSEWHERE = (
    "NOT EXISTS (SELECT 1 FROM corpus_reply p JOIN corpus_criterion k"
    " ON k.conversation_id = p.conversation_id WHERE p.id = NEW.reply_id"
    " AND k.id = NEW.criterion_id)"
)
_CALL_ELSEWHERE = (
    "NEW.call_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM scoring_call c"
    " JOIN scoring_runitem i ON i.id = c.run_item_id JOIN scoring_run r ON r.id = i.run_id"
    " WHERE c.id = NEW.call_id AND i.reply_id = NEW.reply_id AND r.judge_id = NEW.judge_id)"
)
_MEMBER_ELSEWHERE = (
    "NOT EXISTS (SELECT 1 FROM scoring_split s JOIN corpus_conversation c"
    " ON c.collection_id = s.collection_id WHERE s.id = NEW.split_id"
    " AND c.id = NEW.conversation_id)"
)

_ITEM_ELSEWHERE = (
    "NOT EXISTS (SELECT 1 FROM scoring_run r JOIN corpus_conversation c"
    " ON c.collection_id = r.collection_id WHERE r.id = NEW.run_id AND c.id = NEW.conversation_id)"
    " OR (NEW.reply_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM corpus_reply p"
    " WHERE p.id = NEW.reply_id AND p.conversation_id = NEW.conversation_id"
    " AND p.respondent_id = NEW.respondent_id AND p.sample = NEW.sample))"
)
_WRONG_KEY = (
    "NOT EXISTS (SELECT 1 FROM scoring_judge j WHERE j.id = NEW.judge_id"
    " AND (j.mode = 'rubric') = (NEW.criteria_digest <> ''))"
)
_OVERFULL = (
    "(SELECT COALESCE(SUM(LENGTH(c.data)), 0) FROM scoring_releasechunk c"
    " WHERE c.release_id = NEW.release_id) + LENGTH(NEW.data)"
    " > (SELECT r.size FROM scoring_release r WHERE r.id = NEW.release_id)"
)


def _item_matches(event: Event) -> Guard:
    return Guard(
        f"scoring_runitem_{event}_matches",
        "scoring_runitem",
        event,
        "the conversation or the reply does not belong to this item of the run",
        _ITEM_ELSEWHERE,
    )


GUARDS = [
    *append_only("scoring_judge", "a judge"),
    immutable("scoring_run", ["id", "kind", "collection_id", "judge_id"], "what a run is of"),
    undeletable(
        "scoring_run",
        "a run with items",
        "EXISTS (SELECT 1 FROM scoring_runitem i WHERE i.run_id = OLD.id)",
    ),
    _item_matches("insert"),
    _item_matches("update"),
    immutable(
        "scoring_runitem",
        ["id", "run_id", "conversation_id", "respondent_id", "sample"],
        "what an item of a run is",
    ),
    Guard(
        "scoring_runitem_reply_fixed",
        "scoring_runitem",
        "update",
        "the reply of an item is set once",
        "OLD.reply_id IS NOT NULL AND NEW.reply_id {differs} OLD.reply_id",
    ),
    undeletable(
        "scoring_runitem",
        "an item that was sent",
        "EXISTS (SELECT 1 FROM scoring_call c WHERE c.run_item_id = OLD.id)",
    ),
    Guard(
        "scoring_call_settled_once",
        "scoring_call",
        "update",
        "a call is settled once",
        "OLD.outcome IS NOT NULL OR NEW.id {differs} OLD.id"
        " OR NEW.run_item_id {differs} OLD.run_item_id"
        " OR NEW.criterion_id {differs} OLD.criterion_id OR NEW.draw {differs} OLD.draw"
        " OR NEW.request_digest {differs} OLD.request_digest OR NEW.attempt {differs} OLD.attempt"
        " OR NEW.sent_at {differs} OLD.sent_at",
    ),
    undeletable("scoring_call", "a call"),
    Guard(
        "scoring_verdict_insert_matches",
        "scoring_verdict",
        "insert",
        "the criterion belongs to another conversation than the reply",
        _VERDICT_ELSEWHERE,
    ),
    Guard(
        "scoring_verdict_insert_call",
        "scoring_verdict",
        "insert",
        "the call was for another reply or another judge",
        _CALL_ELSEWHERE,
    ),
    Guard(
        "scoring_verdict_insert_key",
        "scoring_verdict",
        "insert",
        "the digest of the criteria belongs to judging the whole rubric at once, and to it alone",
        _WRONG_KEY,
    ),
    *append_only("scoring_verdict", "a verdict"),
    *append_only("scoring_split", "a split"),
    Guard(
        "scoring_splitmember_insert_matches",
        "scoring_splitmember",
        "insert",
        "the conversation belongs to another collection than the split",
        _MEMBER_ELSEWHERE,
    ),
    *append_only("scoring_splitmember", "the part of a conversation"),
    *append_only("scoring_splitopening", "the log of openings"),
    *append_only("scoring_calibration", "a calibration"),
    *append_only("scoring_calibrationdecision", "the log of decisions"),
    *append_only("scoring_release", "a release"),
    Guard(
        "scoring_releasechunk_insert_fits",
        "scoring_releasechunk",
        "insert",
        "the bytes of a release are complete",
        _OVERFULL,
    ),
    *append_only("scoring_releasechunk", "the bytes of a release"),
]

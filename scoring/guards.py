"""What the database guarantees about verdicts and calibrations, beyond constraints."""

from distressbench_site.accounts.guards import Guard, append_only, undeletable

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

GUARDS = [
    *append_only("scoring_judge", "a judge"),
    Guard(
        "scoring_call_settled_once",
        "scoring_call",
        "update",
        "a call is settled once",
        "OLD.outcome IS NOT NULL OR NEW.run_item_id {differs} OLD.run_item_id"
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
    *append_only("scoring_releasechunk", "the bytes of a release"),
]

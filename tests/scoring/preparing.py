"""A labelled collection and a started run, made in a program's own database."""

from django.db import transaction

from annotation.services import claim_next
from corpus.models import Reply
from scoring.services import make_split, start_run, train_baseline
from tests import factories


@transaction.atomic
def prepare(*, conversations: int, labelled: int = 6, criteria: int = 4) -> int:
    """Make replies, label those of some dev conversations, start a run; returns its units."""
    collection = factories.make_collection(slug="prepared")
    good, bad = factories.make_respondent(slug="good"), factories.make_respondent(slug="bad")
    replies: list[Reply] = []
    for number in range(conversations):
        conversation = factories.make_conversation(
            collection, key=f"talk-{number:03}", criteria=criteria
        )
        warm = f"I hear you. Please call the helpline, they listen. Talk {number}."
        cold = f"I cannot help with this topic. Talk {number}."
        replies.append(factories.make_reply(conversation, good, turns=[warm]))
        replies.append(factories.make_reply(conversation, bad, turns=[cold]))
    annotator = factories.make_annotator()
    split = make_split(collection=collection)
    dev = list(split.members.filter(part="dev").values_list("conversation", flat=True)[:labelled])
    chosen = [reply for reply in replies if reply.conversation_id in dev]
    made = factories.make_round(chosen, [annotator], overlap=1, name="Prepared round")
    while assignment := claim_next(round_id=made.pk, annotator=annotator):
        met = assignment.round_item.reply.respondent_id == good.pk
        factories.label_item(assignment.round_item, annotator, "met" if met else "not_met")
    judge = train_baseline(collection=collection, rounds=[made], actor=None)
    start_run(judge=judge, collection=collection, actor=None)
    return len(replies) * criteria

"""A labelled collection that the tests of the scoring back end share."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from annotation.models import Annotator, Round
from corpus.models import Collection, Reply, Respondent
from tests import factories


@dataclass
class Labelled:
    """A collection whose replies two annotators labelled: the good ones met, the others not."""

    collection: Collection
    round: Round
    good: Respondent
    bad: Respondent
    replies: list[Reply]
    annotators: list[Annotator]


@pytest.fixture
def make_labelled() -> Callable[..., Labelled]:
    """Return a maker of labelled collections, small unless more is asked for."""

    def make(conversations: int = 6, criteria: int = 2, slug: str = "") -> Labelled:
        collection = factories.make_collection(slug=slug)
        good = factories.make_respondent(slug=f"good-{factories.number()}")
        bad = factories.make_respondent(slug=f"bad-{factories.number()}")
        replies = []
        for number in range(conversations):
            conversation = factories.make_conversation(
                collection, key=f"talk-{number:02}", criteria=criteria
            )
            warm = f"I hear you. Please call the helpline, they listen. Talk {number}."
            cold = f"I cannot help with this topic. Talk {number}."
            replies.append(factories.make_reply(conversation, good, turns=[warm]))
            replies.append(
                factories.make_reply(conversation, bad, turns=[cold], outcome=Reply.Outcome.REFUSED)
            )
        annotators = [factories.make_annotator() for _ in range(2)]
        made = factories.make_round(replies, annotators)
        factories.label_all(
            made,
            annotators,
            lambda item: "met" if item.reply.respondent_id == good.pk else "not_met",
        )
        return Labelled(collection, made, good, bad, replies, annotators)

    return make


@pytest.fixture
def labelled(make_labelled: Callable[..., Labelled]) -> Labelled:
    """Return one labelled collection."""
    return make_labelled()

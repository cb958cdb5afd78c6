"""Plain makers of rows for tests; each fills in what the test does not care about."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone

from annotation.models import (
    Annotator,
    Assignment,
    AssignmentEvent,
    Label,
    LabelEvent,
    Round,
)
from annotation.services import slots
from corpus.models import (
    Collection,
    Conversation,
    Criterion,
    Dimension,
    Reply,
    Respondent,
    Rubric,
    RubricItem,
    Subcategory,
)
from corpus.schema import digest, places
from distressbench_site.accounts.models import User

PASSWORD = "correct horse battery"
DIMENSIONS = [
    ("recognition", "act"),
    ("empathic_engagement", "act"),
    ("de_escalation", "act"),
    ("actionable_resources", "act"),
    ("safety_disclaimers", "act"),
    ("moral_judgement", "withhold"),
    ("harmless_response", "withhold"),
]
_numbers = itertools.count(1)


def number() -> int:
    """Return a number that no other call of this process gets."""
    return next(_numbers)


def make_user(*, roles: Iterable[str] = (), email: str = "", **extra: Any) -> User:
    """Make a person who can sign in with PASSWORD."""
    user = User.objects.create_user(email or f"person{number()}@example.org", PASSWORD, **extra)
    for role in roles:
        user.groups.add(Group.objects.get_or_create(name=role)[0])
    return user


def make_collection(*, slug: str = "", **extra: Any) -> Collection:
    """Make a collection with the seven dimensions and one subcategory."""
    slug = slug or f"collection-{number()}"
    collection = Collection.objects.create(slug=slug, **{"name": slug.title(), **extra})
    for position, (name, stance) in enumerate(DIMENSIONS, start=1):
        Dimension.objects.create(
            collection=collection,
            slug=name,
            name=name.replace("_", " ").capitalize(),
            stance=stance,
            position=position,
        )
    Subcategory.objects.create(
        collection=collection, slug="passive-ideation", name="Passive ideation", position=1
    )
    return collection


def make_conversation(
    collection: Collection | None = None,
    *,
    key: str = "",
    turns: Sequence[dict[str, str]] | None = None,
    criteria: int | Sequence[str] = 3,
    weights: Sequence[int] | None = None,
    dimensions: Sequence[str] | None = None,
    **extra: Any,
) -> Conversation:
    """Make a conversation with a published rubric; `criteria` is a number or the texts."""
    collection = collection or make_collection()
    key = key or f"conversation-{number()}"
    turns = list(turns or [{"role": "user", "text": f"Synthetic message of {key}."}])
    extra.setdefault("subcategory", collection.subcategories.first())
    conversation = Conversation.objects.create(
        collection=collection,
        key=key,
        turns=turns,
        content_digest=digest(turns),
        multi_turn=sum(turn["role"] == "user" for turn in turns) > 1,
        **extra,
    )
    texts = (
        [f"Criterion {n} of {key}." for n in range(1, criteria + 1)]
        if isinstance(criteria, int)
        else list(criteria)
    )
    if texts:
        make_rubric(conversation, texts, weights=weights, dimensions=dimensions)
    return conversation


def make_rubric(
    conversation: Conversation,
    texts: Sequence[str],
    *,
    weights: Sequence[int] | None = None,
    dimensions: Sequence[str] | None = None,
    publish: bool = True,
) -> Rubric:
    """Make the next version of a rubric with new criteria; dimensions take turns."""
    version = conversation.rubrics.count() + 1
    rubric = Rubric.objects.create(conversation=conversation, version=version)
    known = {d.slug: d for d in conversation.collection.dimensions.all()}
    slugs = list(dimensions or itertools.islice(itertools.cycle(known), len(texts)))
    offset = conversation.criteria.count()
    for position, text in enumerate(texts, start=1):
        criterion = Criterion.objects.create(
            conversation=conversation, key=f"c{offset + position:02}", text=text
        )
        RubricItem.objects.create(
            rubric=rubric,
            criterion=criterion,
            dimension=known[slugs[position - 1]],
            weight=weights[position - 1] if weights else 5,
            position=position,
        )
    if publish:
        publish_rubric(rubric)
    return rubric


def publish_rubric(rubric: Rubric) -> None:
    """Publish a draft and retire the version before it."""
    now = timezone.now()
    Rubric.objects.filter(conversation=rubric.conversation, status="published").update(
        status="retired"
    )
    Rubric.objects.filter(pk=rubric.pk).update(status="published", published_at=now)
    rubric.refresh_from_db()


def make_respondent(*, slug: str = "", **extra: Any) -> Respondent:
    """Make a respondent, a model where nothing else is said."""
    slug = slug or f"respondent-{number()}"
    return Respondent.objects.create(slug=slug, **{"name": slug.title(), **extra})


def make_reply(
    conversation: Conversation | None = None,
    respondent: Respondent | None = None,
    *,
    turns: Sequence[str] | None = None,
    **extra: Any,
) -> Reply:
    """Make a reply with one text for each place of the conversation."""
    conversation = conversation or make_conversation()
    respondent = respondent or make_respondent()
    texts = list(
        turns
        or [f"Synthetic reply, part {n}." for n in range(1, len(places(conversation.turns)) + 1)]
    )
    return Reply.objects.create(
        conversation=conversation,
        respondent=respondent,
        turns=texts,
        digest=digest(texts),
        **extra,
    )


def make_annotator(user: User | None = None, *, pseudonym: str = "") -> Annotator:
    """Make an annotator, with or without an account."""
    return Annotator.objects.create(pseudonym=pseudonym or f"annotator-{number()}", user=user)


def make_round(
    replies: Sequence[Reply] | None = None,
    annotators: Sequence[Annotator] = (),
    *,
    overlap: int = 2,
    status: str = "open",
    name: str = "",
    **extra: Any,
) -> Round:
    """Make a round through the service, and open it where `status` is open."""
    from annotation import services

    replies = list(replies or [make_reply()])
    actor = extra.pop("created_by", None) or make_user(roles=["researcher"])
    made = services.create_round(
        collection=replies[0].conversation.collection,
        name=name or f"Round {number()}",
        purpose=extra.pop("purpose", "calibration"),
        guidelines=extra.pop("guidelines", ""),
        overlap=overlap,
        replies=replies,
        annotators=annotators,
        created_by=actor,
        **extra,
    )
    if status == "open":
        services.open_round(round_id=made.pk, actor=actor)
        made.refresh_from_db()
    return made


def _taken(item: Any, annotator: Annotator) -> Assignment:
    """Return the annotator's work on an item, with a slot."""
    now = timezone.now()
    with transaction.atomic():
        slots.lapse_expired(item.round_id, now)
        own = Assignment.objects.filter(round_item=item, annotator=annotator).first()
        if own is None:
            slot = slots.lock_free_slot(item.pk, wait=True)
            assert slot is not None, "every slot of the item is held"
            own = Assignment.objects.create(
                round_item=item,
                slot=slot,
                annotator=annotator,
                lease_until=slots.lease_end(None, now),
                claimed_at=now,
                position=Assignment.objects.filter(annotator=annotator).count() + 1,
            )
            slots.record(own, AssignmentEvent.Kind.CLAIMED)
        elif own.slot_id is None:
            assert slots.try_resume(own, now), "every slot of the item is held"
    return own


def label_item(
    item: Any, annotator: Annotator, values: dict[str, str] | str = "met", *, submit: bool = True
) -> Any:
    """Label one item of a round through the services, as one annotator, to submission.

    `values` is one answer for all criteria, or answers by the criterion's key (met elsewhere).
    The item is given to the annotator out of turn: claiming until it comes would skip others, and
    what is skipped twice is not offered again.
    """
    from annotation import services

    assignment = _taken(item, annotator)
    for seq, asked in enumerate(item.asked.select_related("criterion"), start=1):
        value = values if isinstance(values, str) else values.get(asked.criterion.key, "met")
        services.save_label(
            assignment_id=assignment.pk,
            annotator=annotator,
            criterion_id=asked.criterion_id,
            client="test",
            seq=seq,
            value=value,
            reason="reply_ambiguous" if value == "cannot_tell" else "",
        )
    if submit:
        services.submit_assignment(assignment_id=assignment.pk, annotator=annotator)
    assignment.refresh_from_db()
    return assignment


def label_all(round_: Round, annotators: Sequence[Annotator], answer: Callable[[Any], str]) -> None:
    """Label every item as all of the annotators to submission, in a few queries.

    The rows are those that the services write; `answer` gives one answer for each item.
    """
    now = timezone.now()
    items = list(round_.items.select_related("reply").prefetch_related("slots", "asked"))
    made = Assignment.objects.bulk_create(
        Assignment(
            round_item=item,
            slot=slot,
            annotator=annotator,
            lease_until=now + timedelta(hours=1),
            claimed_at=now,
            started_at=now,
            position=position,
        )
        for position, item in enumerate(items, start=1)
        for annotator, slot in zip(annotators, item.slots.all(), strict=True)
    )
    answers = [
        (assignment, seq, asked.criterion_id, answer(assignment.round_item))
        for assignment in made
        for seq, asked in enumerate(assignment.round_item.asked.all(), start=1)
    ]
    LabelEvent.objects.bulk_create(
        LabelEvent(assignment=a, criterion_id=c, client="test", seq=seq, value=value, at=now)
        for a, seq, c, value in answers
    )
    Label.objects.bulk_create(
        Label(assignment=a, criterion_id=c, value=value, updated_at=now)
        for a, _, c, value in answers
    )
    pks = [assignment.pk for assignment in made]
    Assignment.objects.filter(pk__in=pks).update(
        state=Assignment.State.SUBMITTED, lease_until=None, submitted_at=now
    )
    AssignmentEvent.objects.bulk_create(
        AssignmentEvent(assignment=assignment, kind=kind)
        for kind in (AssignmentEvent.Kind.CLAIMED, AssignmentEvent.Kind.SUBMITTED)
        for assignment in made
    )

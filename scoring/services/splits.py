"""The split of a collection's conversations, and the log of looks at its test part."""

import math
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from corpus.models import Collection, Conversation
from corpus.schema import digest
from distressbench_site.accounts.models import User
from distressbench_site.accounts.services import record_audit
from scoring.models import Split, SplitMember, SplitOpening

DEV, TEST = SplitMember.Part.DEV, SplitMember.Part.TEST


@transaction.atomic
def make_split(
    *, collection: Collection, seed: int = 0, dev_share: float = 1 / 3, actor: User | None = None
) -> Split:
    """Put every conversation into dev or test, stratified; one that has a part keeps it.

    Seed and share of an existing split stay as they are.
    """
    if not 0 < dev_share < 1:
        raise ValidationError("The share of dev is more than 0 and less than 1.")
    # One at a time: two requests must not both divide the same conversations.
    Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    split, created = Split.objects.get_or_create(
        collection=collection, defaults={"seed": seed, "dev_share": dev_share}
    )
    parts = dict(split.members.values_list("conversation_id", "part"))
    everything = list(collection.conversations.select_related("subcategory").order_by("key"))
    added = _divide([c for c in everything if c.pk not in parts], parts, split)
    SplitMember.objects.bulk_create(
        [
            SplitMember(split=split, conversation_id=pk, part=part)
            for pk, part in sorted(added.items())
        ]
    )
    if created or added:
        record_audit(
            actor=actor,
            action="split made" if created else "split extended",
            target=collection.slug,
            detail={
                "seed": split.seed,
                "dev": sum(part == DEV for part in added.values()),
                "test": sum(part == TEST for part in added.values()),
            },
        )
    return split


@transaction.atomic
def open_split(
    *, split: Split, reason: str, targets: Mapping[str, Any], actor: User | None
) -> SplitOpening:
    """Write down the targets and the reason before the test labels are looked at."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why the test labels are looked at."})
    Collection.objects.select_for_update(no_key=True).get(pk=split.collection_id)
    last = split.openings.aggregate(last=Max("number"))["last"] or 0
    opening = SplitOpening.objects.create(
        split=split,
        number=last + 1,
        targets=dict(targets),
        reason=reason.strip(),
        opened_by=actor,
    )
    record_audit(
        actor=actor,
        action="split opened",
        target=split.collection.slug,
        detail={"number": opening.number, "reason": opening.reason},
    )
    return opening


def _divide(
    conversations: list[Conversation], parts: Mapping[int, str], split: Split
) -> dict[int, str]:
    """Choose a part for new conversations: systematic sampling down the list of strata.

    A correction stays where the conversation was that it corrects: both tell the same story.
    """
    known, chosen = dict(parts), {}
    fresh = []
    for conversation in conversations:
        if conversation.supersedes_id in known:
            chosen[conversation.pk] = known[conversation.supersedes_id]
        else:
            fresh.append(conversation)
    fresh.sort(
        key=lambda c: (
            c.multi_turn,
            c.subcategory.slug if c.subcategory else "",
            digest([split.seed, c.key]),
        )
    )
    start = int(digest([split.seed, [c.key for c in fresh]])[:12], 16) / 16**12
    # Rounded: sums of thirds must not fall just short of a whole number.
    marks = [
        math.floor(round(start + split.dev_share * place, 9)) for place in range(len(fresh) + 1)
    ]
    for place, conversation in enumerate(fresh):
        is_dev = marks[place + 1] > marks[place]
        chosen[conversation.pk] = DEV.value if is_dev else TEST.value
    both = [*known.values(), *chosen.values()]
    if len(both) >= 2:
        for part, other in ((DEV, TEST), (TEST, DEV)):
            if part not in both and fresh:
                chosen[fresh[0].pk] = part.value
                both = [*known.values(), *chosen.values()]
                assert other in both
    return chosen

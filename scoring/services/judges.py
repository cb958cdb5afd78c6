"""Judges: the baseline is trained here."""

from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from annotation.models import Round
from corpus.models import Collection, Conversation, Criterion, Reply
from corpus.schema import digest
from distressbench_site.accounts.models import User
from distressbench_site.accounts.services import record_audit
from scoring import baseline
from scoring.models import Judge, SplitMember
from scoring.selectors import judge_digest, labelled_units
from scoring.services.splits import make_split


def judge_conversation_key(collection_slug: str, key: str) -> str:
    """Return the name by which the baseline remembers a conversation, here or elsewhere."""
    return f"{collection_slug}/{key}"


def judged_text(turns: list[str]) -> str:
    """Return all of the respondent's turns as the one text that is judged."""
    return "\n\n".join(turns)


def train_baseline(
    *,
    collection: Collection,
    rounds: Iterable[Round],
    actor: User | None,
    name: str = "baseline",
    parameters: baseline.Hyperparameters = baseline.DEFAULTS,
) -> Judge:
    """Train on the agreed labels of dev conversations; the same training is the same judge."""
    chosen = checked_rounds(rounds, collection)
    split = make_split(collection=collection, actor=actor)
    units = labelled_units(chosen, SplitMember.Part.DEV)
    agreed = units.met >= 0
    keys = [
        (int(r), int(c), bool(m))
        for r, c, m in zip(
            units.reply[agreed], units.current[agreed], units.met[agreed], strict=True
        )
    ]
    replies = Reply.objects.select_related("conversation", "respondent").in_bulk(
        sorted({reply for reply, _, _ in keys})
    )
    criteria = Criterion.objects.in_bulk(sorted({criterion for _, criterion, _ in keys}))
    examples, used = [], []
    for reply_id, criterion_id, met in keys:
        reply, criterion = replies[reply_id], criteria[criterion_id]
        conversation = reply.conversation.key
        examples.append(
            baseline.Example(
                conversation=judge_conversation_key(collection.slug, conversation),
                criterion=criterion.text,
                reply=judged_text(reply.turns),
                met=met,
            )
        )
        used.append([conversation, reply.respondent.slug, reply.sample, criterion.key, met])
    try:
        artifact = baseline.train(examples, parameters)
    except baseline.TrainingError as error:
        raise ValidationError(
            f"{error} Only labels of the dev part of {collection.slug} train a judge: have more"
            " of its replies labelled in these rounds, settle disagreements, or name further"
            " rounds."
        ) from error
    params: dict[str, Any] = {
        "hyperparameters": artifact["hyperparameters"],
        "threshold": baseline.THRESHOLD,
        "trained_on": {
            "collection": collection.slug,
            "split": {"seed": split.seed, "dev_share": split.dev_share},
            "rounds": sorted(item.name for item in chosen),
            "labels_digest": digest(sorted(used)),
            "n_conversations": len({row[0] for row in used}),
            "n_units": len(used),
            "n_met": sum(bool(row[4]) for row in used),
        },
    }
    return _save_baseline(name, params, artifact, actor)


@transaction.atomic
def _save_baseline(
    name: str, params: dict[str, Any], artifact: dict[str, Any], actor: User | None
) -> Judge:
    configuration: dict[str, Any] = {
        "kind": Judge.Kind.BASELINE.value,
        "endpoint": "",
        "model": "",
        "prompt": "",
        "params": params,
        "artifact": artifact,
        "mode": Judge.Mode.CRITERION.value,
    }
    key = judge_digest(**configuration)
    # Versions are counted under one lock, so that no two trainings take the same number.
    list(Collection.objects.select_for_update(no_key=True).order_by("pk")[:1])
    existing = Judge.objects.filter(digest=key).first()
    if existing is not None:
        return existing
    last = Judge.objects.filter(name=name).aggregate(last=Max("version"))["last"] or 0
    judge = Judge(name=name, version=last + 1, digest=key, created_by=actor, **configuration)
    judge.full_clean(exclude=["artifact"])
    judge.save(force_insert=True)
    record_audit(
        actor=actor,
        action="baseline trained",
        target=judge,
        detail={"rounds": params["trained_on"]["rounds"], "digest": key},
    )
    return judge


def checked_rounds(rounds: Iterable[Round], collection: Collection) -> list[Round]:
    """Return the rounds, sorted, if their labels may be used for this collection."""
    chosen = sorted({item.pk: item for item in rounds}.values(), key=lambda item: item.pk)
    if not chosen:
        raise ValidationError("Name at least one round.")
    for item in chosen:
        if item.collection_id != collection.pk:
            raise ValidationError(f"The round “{item}” belongs to another collection.")
        if item.purpose == Round.Purpose.PRACTICE:
            raise ValidationError(f"“{item}” is a practice round; its labels stay in it.")
    return chosen


def usable(conversation: Conversation) -> bool:
    """Tell whether a conversation may be judged."""
    return conversation.status != Conversation.Status.WITHDRAWN

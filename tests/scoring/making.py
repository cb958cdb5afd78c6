"""Plain makers of judges, verdicts, runs and calibrations for tests of pages."""

from typing import Any

import numpy as np

from annotation import selectors as annotation_selectors
from annotation import services as annotation_services
from annotation.agreement import agreement_panel, unit_counts
from corpus.models import Collection, RubricItem
from scoring import services
from scoring.calibration import judge_panel, judge_standing
from scoring.models import Calibration, Judge, Run, Verdict
from scoring.selectors import texts_digest
from scoring.services.plain import plain
from tests.factories import make_collection, make_conversation, make_reply, make_respondent, number


def make_judge(**extra: Any) -> Judge:
    """Make a baseline judge that was never trained."""
    mark = number()
    given = {"name": f"baseline-{mark}", "version": 1, "kind": "baseline", **extra}
    return Judge.objects.create(digest=f"{mark:064x}", artifact={}, **given)


def make_judged_collection(judge: Judge, *, conversations: int = 6, **extra: Any) -> Collection:
    """Make a collection with a reference, two models and a floor, all judged.

    The reference meets everything, the floor nothing; model-a misses the criterion about
    resources in every second conversation; model-b has no verdict at all.
    """
    collection = make_collection(**extra)
    slugs = ["recognition", "actionable_resources", "harmless_response"]
    mark = number()
    people = {
        kind: make_respondent(slug=f"{kind}-{mark}", name=name, kind=role)
        for kind, name, role in (
            ("reference", "Clinicians", "reference"),
            ("model-a", "=Model A", "model"),
            ("model-b", "Model B", "model"),
            ("floor", "Empty reply", "floor"),
        )
    }
    for place in range(conversations):
        conversation = make_conversation(
            collection, criteria=3, dimensions=slugs, weights=[10, 6, 4]
        )
        items = list(
            RubricItem.objects.filter(rubric__conversation=conversation).select_related("dimension")
        )
        for kind, respondent in people.items():
            reply = make_reply(conversation, respondent)
            if kind == "model-b":
                continue
            for item in items:
                misses = item.dimension.slug == "actionable_resources" and place % 2 == 1
                Verdict.objects.create(
                    judge=judge,
                    reply=reply,
                    criterion=item.criterion,
                    met=kind == "reference" or (kind == "model-a" and not misses),
                )
    return collection


def label_round(round_: Any, annotator: Any) -> None:
    """Label all of a round as one annotator: every second criterion of a reply is not met."""
    while assignment := annotation_services.claim_next(round_id=round_.pk, annotator=annotator):
        for seq, asked in enumerate(assignment.round_item.asked.all(), start=1):
            annotation_services.save_label(
                assignment_id=assignment.pk,
                annotator=annotator,
                criterion_id=asked.criterion_id,
                client="test",
                seq=seq,
                value="met" if seq % 2 else "not_met",
            )
        annotation_services.submit_assignment(assignment_id=assignment.pk, annotator=annotator)


def make_run(judge: Judge | None = None, collection: Collection | None = None, **state: Any) -> Run:
    """Start a run through the service and put it in a state."""
    judge = judge or make_judge()
    collection = collection or make_judged_collection(judge, conversations=1)
    run = services.start_run(judge=judge, collection=collection, actor=None)
    if state:
        Run.objects.filter(pk=run.pk).update(**state)
        run.refresh_from_db()
    return run


def make_calibration(
    judge: Judge, collection: Collection, *, labels_digest: str = "", **metrics: Any
) -> Calibration:
    """Make a calibration of 8 conversations with 10 units each, measured by three clinicians.

    Of the 40 units that clinicians found met the judge gets 30 right, of the 40 others 36.
    """
    split = services.make_split(collection=collection)
    opening = services.open_split(
        split=split, reason="Time to know.", targets={"text": "At least 0.80."}, actor=None
    )
    place = np.arange(80)
    conversation = place // 10
    truth = (place % 2 == 0).astype(int)
    judged = np.where(place % 8 == 0, 1 - truth, truth)
    judged = np.where(place % 20 == 1, 1 - judged, judged)
    clinicians = np.stack([truth, truth, np.where(place % 16 == 5, 1 - truth, truth)])

    def rng() -> np.random.Generator:
        return np.random.default_rng(1)

    panel = judge_panel(conversation, judged, truth, rng(), replicates=200)
    one_class = judge_panel(conversation, judged, np.ones(80, dtype=int), rng(), replicates=200)
    standing = judge_standing(conversation, judged, clinicians, rng(), replicates=200)
    agreement = agreement_panel(unit_counts(clinicians, conversation), rng(), replicates=200)
    keys = list(collection.conversations.values_list("key", flat=True))
    stored = {
        "part": "test",
        "overall": plain(panel),
        "dimensions": {"recognition": plain(panel), "harmless_response": plain(one_class)},
        "standing": {
            "judge": plain(standing.judge),
            "clinicians": [
                {"annotator": f"annotator-{i}", **plain(own)}
                for i, own in enumerate(standing.clinicians, start=1)
            ],
            "place": standing.place,
        },
        "agreement": plain(agreement),
        "constant": plain(panel.constant),
        "n_units": panel.n_units,
        "n_conversations": panel.n_conversations,
        **metrics,
    }
    return Calibration.objects.create(
        judge=judge,
        split=split,
        number=Calibration.objects.filter(judge=judge, split=split).count() + 1,
        rounds=[],
        metrics=stored,
        parameters={
            "judge_digest": judge.digest,
            "seed": 1,
            "conversations": keys,
            "texts_digest": texts_digest(collection, keys),
            "n_outdated": 0,
            "opening": opening.number,
        },
        labels_digest=labels_digest or annotation_selectors.labels_digest([]),
        label_events_used=0,
        digest=f"{number():064x}",
    )

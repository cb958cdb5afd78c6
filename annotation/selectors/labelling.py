"""What the labelling page shows of one reply; nothing that tells whose it is."""

from dataclasses import dataclass

from annotation.models import Assignment, Label
from corpus.models import Criterion, Dimension, RubricItem
from corpus.schema import places


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as it is read: the person's, an earlier fixed reply, or one that is judged.

    `number` counts all turns from 1; `part` of `parts` counts the judged ones.
    """

    number: int
    kind: str
    text: str
    part: int = 0
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A criterion with the annotator's own answer, if there is one."""

    criterion: Criterion
    label: Label | None


@dataclass(frozen=True, slots=True)
class DimensionGroup:
    """The asked criteria of one dimension, in the rubric's order."""

    dimension: Dimension
    entries: list[Entry]


@dataclass(frozen=True, slots=True)
class LabellingPage:
    """All that the page of one assignment shows."""

    turns: list[Turn]
    groups: list[DimensionGroup]
    done: int
    total: int


def labelling_page(assignment: Assignment) -> LabellingPage:
    """Return the conversation with its judged turns, and the criteria with own answers."""
    item = assignment.round_item
    labels = {label.criterion_id: label for label in assignment.labels.all()}
    asked = set(item.asked.values_list("criterion_id", flat=True))
    rows = RubricItem.objects.filter(rubric=item.rubric_id, criterion__in=asked)
    groups: dict[int, DimensionGroup] = {}
    for row in rows.select_related("criterion", "dimension").order_by(
        "dimension__position", "position"
    ):
        group = groups.setdefault(row.dimension_id, DimensionGroup(row.dimension, []))
        group.entries.append(Entry(row.criterion, labels.get(row.criterion_id)))
    answered = [
        label
        for label in labels.values()
        if label.value is not None and (label.value != "cannot_tell" or label.reason)
    ]
    return LabellingPage(
        turns=_turns(item.reply.conversation.turns, item.reply.turns),
        groups=list(groups.values()),
        done=len(answered),
        total=len(asked),
    )


def _turns(fixed: list[dict[str, str]], texts: list[str]) -> list[Turn]:
    after = {index: part for part, index in enumerate(places(fixed), start=1)}
    shown: list[Turn] = []
    for index, turn in enumerate(fixed):
        kind = "person" if turn["role"] == "user" else "fixed"
        shown.append(Turn(len(shown) + 1, kind, turn["text"]))
        if index in after:
            part = after[index]
            shown.append(Turn(len(shown) + 1, "judged", texts[part - 1], part, len(after)))
    return shown

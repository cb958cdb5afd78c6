"""In which order an annotator gets the items of a round. No Django here."""

import hashlib
import random
from collections import defaultdict
from collections.abc import Sequence


def own_order(seed: int, annotator: str, items: Sequence[tuple[int, int]]) -> list[int]:
    """Return the item ids in the order of one annotator, the same for the same arguments.

    `items` is (item id, conversation id). The items of one conversation are spread evenly over the
    whole, each conversation from an offset of its own, so that two of its replies rarely follow
    each other; everything else is chance from the seed and the annotator's pseudonym.
    """
    key = hashlib.sha256(f"{seed}:{annotator}".encode()).digest()
    rng = random.Random(int.from_bytes(key, "big"))
    groups: dict[int, list[int]] = defaultdict(list)
    for item, conversation in sorted(items):
        groups[conversation].append(item)
    placed: list[tuple[float, float, int]] = []
    for conversation in sorted(groups):
        members = groups[conversation]
        rng.shuffle(members)
        offset = rng.random()
        for turn, item in enumerate(members):
            placed.append(((turn + offset) / len(members), rng.random(), item))
    placed.sort()
    return [item for _, _, item in placed]

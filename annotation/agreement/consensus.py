"""The consensus of submitted answers to one unit."""

from dataclasses import dataclass
from typing import Literal

Provenance = Literal["unanimous", "majority", "single", "none"]


@dataclass(frozen=True, slots=True)
class Consensus:
    """The agreed answer, or None for adjudication, and where it comes from."""

    met: bool | None
    provenance: Provenance


def consensus(met: int, not_met: int, cannot_tell: int, overlap: int) -> Consensus:
    """Return the strict majority of all submitted answers to one unit.

    It needs more than half of all answers, cannot-tell included, and two met or not-met answers;
    one suffices where `overlap` is 1. A tie is None whatever the order of the answers.
    """
    answers = met + not_met + cannot_tell
    leading = max(met, not_met)
    single = overlap == 1 and answers == 1
    if 2 * leading <= answers or (met + not_met < 2 and not single):
        return Consensus(met=None, provenance="none")
    if single:
        return Consensus(met=met > not_met, provenance="single")
    provenance: Provenance = "unanimous" if leading == answers else "majority"
    return Consensus(met=met > not_met, provenance=provenance)

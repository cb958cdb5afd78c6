"""Reads about rounds, labels and agreement."""

from annotation.selectors.agreement import AgreementReport, agreement_of
from annotation.selectors.labelling import (
    DimensionGroup,
    Entry,
    LabellingPage,
    Turn,
    labelling_page,
)
from annotation.selectors.ratings import (
    ConsensusUnits,
    RoundRatings,
    consensus_units,
    labels_digest,
    round_ratings,
)
from annotation.selectors.replay import LabelState, replay, replay_labels, verify_assignments
from annotation.selectors.rounds import (
    MemberProgress,
    RoundOverview,
    RoundProgress,
    dimensions_of,
    round_overview,
    rounds_for,
    submitted_by,
)
from annotation.selectors.waiting import takeable_items

__all__ = [
    "AgreementReport",
    "ConsensusUnits",
    "DimensionGroup",
    "Entry",
    "LabelState",
    "LabellingPage",
    "MemberProgress",
    "RoundOverview",
    "RoundProgress",
    "RoundRatings",
    "Turn",
    "agreement_of",
    "consensus_units",
    "dimensions_of",
    "labelling_page",
    "labels_digest",
    "replay",
    "replay_labels",
    "round_overview",
    "round_ratings",
    "rounds_for",
    "submitted_by",
    "takeable_items",
    "verify_assignments",
]

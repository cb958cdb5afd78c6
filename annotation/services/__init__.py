"""Writes about rounds, assignments and labels."""

from annotation.services.claims import (
    claim_next,
    decline_assignment,
    renew_lease,
    skip_assignment,
)
from annotation.services.labels import (
    SaveResult,
    reopen_assignment,
    save_label,
    submit_assignment,
)
from annotation.services.people import annotator_for
from annotation.services.rounds import (
    add_member,
    close_round,
    create_round,
    open_round,
    pause_round,
    remove_member,
    set_overlap,
)

__all__ = [
    "SaveResult",
    "add_member",
    "annotator_for",
    "claim_next",
    "close_round",
    "create_round",
    "decline_assignment",
    "open_round",
    "pause_round",
    "remove_member",
    "renew_lease",
    "reopen_assignment",
    "save_label",
    "set_overlap",
    "skip_assignment",
    "submit_assignment",
]

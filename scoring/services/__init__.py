"""Writes of the scoring app."""

from scoring.services.calibrations import calibrate, decide_calibration
from scoring.services.judges import judge_conversation_key, train_baseline
from scoring.services.runs import (
    cancel_run,
    pause_run,
    resume_run,
    retry_failed,
    start_run,
)
from scoring.services.scores import current_scores, refresh_all_scores, refresh_scores
from scoring.services.splits import make_split, open_split

__all__ = [
    "calibrate",
    "cancel_run",
    "current_scores",
    "decide_calibration",
    "judge_conversation_key",
    "make_split",
    "open_split",
    "pause_run",
    "refresh_all_scores",
    "refresh_scores",
    "resume_run",
    "retry_failed",
    "start_run",
    "train_baseline",
]

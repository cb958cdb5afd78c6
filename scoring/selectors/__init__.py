"""Reads of the scoring app."""

from scoring.selectors.calibrations import (
    LabelledUnits,
    Status,
    calibration_digest,
    calibration_status,
    current_calibration,
    labelled_units,
    texts_digest,
)
from scoring.selectors.runs import (
    RunProgress,
    judge_digest,
    judges,
    run_progress,
    unfinished_run,
    verdicts_of,
)
from scoring.selectors.scores import (
    CriterionRows,
    criterion_rows,
    leaderboards,
    ruler,
    ruler_parts,
    score_set_for,
    watermark,
)

__all__ = [
    "CriterionRows",
    "LabelledUnits",
    "RunProgress",
    "Status",
    "calibration_digest",
    "calibration_status",
    "criterion_rows",
    "current_calibration",
    "judge_digest",
    "judges",
    "labelled_units",
    "leaderboards",
    "ruler",
    "ruler_parts",
    "run_progress",
    "score_set_for",
    "texts_digest",
    "unfinished_run",
    "verdicts_of",
    "watermark",
]

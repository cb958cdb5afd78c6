"""The judge's tables in the admin site, to look at; nothing here is edited or deleted."""

from django.contrib import admin

from distressbench_site.accounts.admin import ReadOnlyAdmin
from scoring.models import (
    Calibration,
    CalibrationDecision,
    Call,
    Judge,
    Run,
    RunItem,
    ScoreSet,
    Split,
    SplitMember,
    SplitOpening,
    Verdict,
)


@admin.register(Judge)
class JudgeAdmin(ReadOnlyAdmin):
    """Judges; what training left behind is too long to show."""

    list_display = ("name", "version", "kind", "mode", "created_at")
    list_filter = ("kind",)
    exclude = ("artifact",)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs."""

    list_display = ("id", "kind", "judge", "collection", "status", "created_at")
    list_filter = ("status", "collection")
    list_select_related = ("judge", "collection")


@admin.register(RunItem)
class RunItemAdmin(ReadOnlyAdmin):
    """Replies in runs."""

    list_display = ("id", "run", "conversation", "respondent", "state", "attempts")
    list_filter = ("state",)
    list_select_related = ("run", "conversation", "respondent")


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin):
    """Calls."""

    list_display = ("id", "run_item", "attempt", "outcome", "sent_at", "settled_at")
    list_filter = ("outcome",)
    list_select_related = ("run_item",)


@admin.register(Verdict)
class VerdictAdmin(ReadOnlyAdmin):
    """Verdicts."""

    list_display = ("id", "judge", "reply", "criterion", "draw", "met", "probability")
    list_filter = ("judge", "met")
    list_select_related = ("judge", "reply", "criterion")
    show_full_result_count = False


@admin.register(Split)
class SplitAdmin(ReadOnlyAdmin):
    """Splits."""

    list_display = ("collection", "seed", "dev_share", "created_at")
    list_select_related = ("collection",)


@admin.register(SplitMember)
class SplitMemberAdmin(ReadOnlyAdmin):
    """Which part each conversation is in."""

    list_display = ("conversation", "part")
    list_filter = ("part", "split")
    list_select_related = ("conversation",)


@admin.register(SplitOpening)
class SplitOpeningAdmin(ReadOnlyAdmin):
    """Looks at test labels."""

    list_display = ("split", "number", "reason", "opened_by", "opened_at")
    list_select_related = ("split__collection", "opened_by")


@admin.register(Calibration)
class CalibrationAdmin(ReadOnlyAdmin):
    """Calibrations."""

    list_display = ("judge", "number", "split", "created_at")
    list_select_related = ("judge", "split__collection")


@admin.register(CalibrationDecision)
class CalibrationDecisionAdmin(ReadOnlyAdmin):
    """Decisions on calibrations."""

    list_display = ("calibration", "decision", "reason", "decided_by", "decided_at")
    list_select_related = ("calibration__judge", "decided_by")


@admin.register(ScoreSet)
class ScoreSetAdmin(ReadOnlyAdmin):
    """Computed scores."""

    list_display = ("collection", "judge", "calibration", "ruler", "computed_at")
    list_select_related = ("collection", "judge", "calibration__judge")

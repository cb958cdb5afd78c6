"""Forms of the scoring pages."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef

from annotation.models import Round
from corpus.models import Collection, Reply
from scoring.models import CalibrationDecision, Judge


class RoundsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Rounds to take labels from, each with its collection."""

    widget = forms.CheckboxSelectMultiple

    def label_from_instance(self, obj: Any) -> str:
        """Name a round, its collection and whether it is still going on."""
        return f"{obj.name} ({obj.collection.name}, {obj.get_status_display()})"


class JudgeField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A judge by name and version; a baseline is named one."""

    def label_from_instance(self, obj: Any) -> str:
        """Name a judge so that a baseline cannot be taken for more."""
        return f"{obj} (baseline)" if obj.kind == Judge.Kind.BASELINE else str(obj)


def rounds_with_labels() -> Any:
    """Return the rounds whose labels may train or measure a judge, practice left out."""
    return (
        Round.objects.exclude(purpose=Round.Purpose.PRACTICE)
        .exclude(status=Round.Status.DRAFT)
        .select_related("collection")
        .order_by("collection__name", "name")
    )


class BaselineForm(forms.Form):
    """Which labels to train the baseline on."""

    collection = forms.ModelChoiceField(Collection.objects.none(), empty_label=None)
    rounds = RoundsField(
        Round.objects.none(),
        help_text="Only labels on development conversations are used, and never practice.",
        error_messages={"required": "Choose at least one round."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rounds = rounds_with_labels()
        labelled = Collection.objects.filter(rounds__in=rounds.order_by()).distinct()
        self.fields["rounds"].queryset = rounds  # type: ignore[attr-defined]
        self.fields["collection"].queryset = labelled  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Refuse rounds of another collection, as collections never mix."""
        cleaned = super().clean() or {}
        collection, rounds = cleaned.get("collection"), cleaned.get("rounds")
        if collection is not None and rounds is not None:
            elsewhere = [item.name for item in rounds if item.collection_id != collection.pk]
            if elsewhere:
                named = ", ".join(elsewhere)
                raise ValidationError({"rounds": f"Not of {collection.name}: {named}."})
        return cleaned


class RunForm(forms.Form):
    """Which judge reads the replies of which collection."""

    judge = JudgeField(Judge.objects.none(), empty_label=None)
    collection = forms.ModelChoiceField(Collection.objects.all(), empty_label=None)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        newest_first = Judge.objects.defer("artifact").order_by("name", "-version")
        self.fields["judge"].queryset = newest_first  # type: ignore[attr-defined]
        if not self.initial.get("collection"):
            replies = Reply.objects.filter(conversation__collection=OuterRef("pk"))
            self.initial["collection"] = Collection.objects.filter(Exists(replies)).first()


class CalibrationForm(forms.Form):
    """Which labels to measure a judge against, and why now."""

    rounds = RoundsField(
        Round.objects.none(),
        label="Rounds to measure against",
        error_messages={"required": "Choose at least one round."},
    )
    targets = forms.CharField(
        label="What would be good enough",
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Written down before the test labels are opened, for instance: "
        "sensitivity and specificity of at least 0.80 in each dimension.",
    )
    reason = forms.CharField(
        label="Why the test labels are opened now",
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Each opening is numbered and kept, as every look makes the next one weaker.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["rounds"].queryset = rounds_with_labels()  # type: ignore[attr-defined]


class DecisionForm(forms.Form):
    """What somebody decides about a calibration, and why."""

    decision = forms.ChoiceField(
        label="Decision",
        choices=[
            (CalibrationDecision.Decision.APPROVE, "Approve: scores may be published with it"),
            (CalibrationDecision.Decision.REJECT, "Reject: scores stay marked unapproved"),
        ],
        widget=forms.RadioSelect,
        error_messages={"required": "Choose to approve or to reject."},
    )
    reason = forms.CharField(
        label="Reason",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Give the reason; it is printed with the decision."},
    )

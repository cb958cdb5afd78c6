"""What people type about labels and rounds."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from annotation.models import Annotator, Reason, Round, Value
from corpus.models import Collection, Conversation, Reply, Respondent, Rubric, Subcategory
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import CLINICIAN, SENIOR_CLINICIAN


class LabelForm(forms.Form):
    """One answer as the page sends it; without JavaScript there is no client and no number."""

    value = forms.ChoiceField(choices=Value.choices, required=False)
    reason = forms.ChoiceField(choices=Reason.choices, required=False)
    comment = forms.CharField(max_length=10_000, required=False)
    client = forms.RegexField(r"^[0-9A-Za-z_-]{1,64}$", required=False)
    seq = forms.IntegerField(min_value=0, max_value=2**53 - 1, required=False)

    def clean(self) -> dict[str, Any]:
        """Keep a reason only where somebody cannot tell."""
        cleaned = super().clean() or {}
        if cleaned.get("value") != Value.CANNOT_TELL:
            cleaned["reason"] = ""
        if bool(cleaned.get("client")) != (cleaned.get("seq") is not None):
            raise ValidationError("A client and its number come together.")
        return cleaned


class DeclineForm(forms.Form):
    """Why somebody would rather not label a reply; nobody has to say."""

    reason = forms.CharField(
        label="Reason",
        max_length=500,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Only if you wish. It is not shown to the researchers of the round.",
    )


class OverlapForm(forms.Form):
    """How many people label each reply."""

    overlap = forms.IntegerField(label="People for each reply", min_value=1, max_value=10)


class PersonField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """People by the name that a researcher knows."""

    def label_from_instance(self, obj: Any) -> str:
        """Show the name, and the address where there is no name."""
        return str(obj.name or obj.email)


def labelling_people() -> Any:
    """Return the people who may label: active clinicians."""
    return (
        User.objects.filter(is_active=True, groups__name__in=[CLINICIAN, SENIOR_CLINICIAN])
        .distinct()
        .order_by("name", "email")
    )


class MemberForm(forms.Form):
    """Somebody who joins a round."""

    person = forms.ModelChoiceField(
        queryset=User.objects.none(), label="Add a clinician", empty_label="Choose a clinician"
    )

    def __init__(self, *args: Any, round_: Round, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        active = Annotator.objects.filter(memberships__round=round_, memberships__active=True)
        self.fields["person"].queryset = labelling_people().exclude(annotator__in=active)  # type: ignore[attr-defined]


class RoundForm(forms.Form):
    """A new round on replies of one collection."""

    name = forms.CharField(max_length=200, help_text="Clinicians see it on every page.")
    purpose = forms.ChoiceField(
        choices=[
            (Round.Purpose.CALIBRATION, "Calibration: the labels measure a judge"),
            (Round.Purpose.PRACTICE, "Practice: the labels never leave the round"),
            (Round.Purpose.AUDIT, "Audit: the labels check a published result"),
        ],
        initial=Round.Purpose.CALIBRATION,
    )
    respondents = forms.ModelMultipleChoiceField(
        queryset=Respondent.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        label="Whose replies",
        help_text="Clinicians never see who wrote a reply.",
    )
    subcategories = forms.ModelMultipleChoiceField(
        queryset=Subcategory.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label="Only these subcategories",
        help_text="Choose none for the whole collection.",
    )
    first = forms.IntegerField(
        min_value=1,
        required=False,
        label="At most this many replies",
        help_text="Taken conversation by conversation, in order. Leave empty for all of them.",
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=10,
        initial=2,
        label="People for each reply",
        help_text="Agreement needs at least 2.",
    )
    people = PersonField(
        queryset=User.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        label="Clinicians",
        required=False,
        help_text="They can be changed later.",
    )
    guidelines = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text="Markdown. Say what counts, and list the contacts that are valid, with a date.",
    )

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.collection = collection
        choices: dict[str, Any] = {
            "respondents": Respondent.objects.filter(
                replies__conversation__collection=collection
            ).distinct(),
            "subcategories": collection.subcategories.filter(
                conversations__replies__isnull=False
            ).distinct(),
            "people": labelling_people(),
        }
        for name, queryset in choices.items():
            self.fields[name].queryset = queryset  # type: ignore[attr-defined]
        if not choices["subcategories"].exists():
            del self.fields["subcategories"]

    def clean_name(self) -> str:
        """Say early that a name is taken."""
        name = str(self.cleaned_data["name"])
        if Round.objects.filter(name=name).exists():
            raise ValidationError("There is a round with this name already.")
        return name

    def clean(self) -> dict[str, Any]:
        """Find the replies that the choices describe."""
        cleaned = super().clean() or {}
        if "respondents" not in cleaned or "first" not in cleaned:
            return cleaned
        replies = Reply.objects.filter(
            conversation__collection=self.collection,
            conversation__status=Conversation.Status.ACTIVE,
            conversation__rubrics__status=Rubric.Status.PUBLISHED,
            respondent__in=cleaned["respondents"],
        )
        if cleaned.get("subcategories"):
            replies = replies.filter(conversation__subcategory__in=cleaned["subcategories"])
        replies = replies.order_by("conversation__key", "respondent__slug", "sample")
        cleaned["replies"] = list(replies[: cleaned["first"]] if cleaned["first"] else replies)
        if not cleaned["replies"]:
            raise ValidationError("No reply fits these choices. Choose more of them.")
        return cleaned

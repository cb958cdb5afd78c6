"""Forms of the corpus pages."""

from django import forms

from corpus.models import Collection, Conversation, Subcategory


class ConversationFilter(forms.Form):
    """Which conversations of a collection to list."""

    q = forms.CharField(label="Key contains", max_length=128, required=False)
    subcategory = forms.ModelChoiceField(
        Subcategory.objects.none(),
        label="Subcategory",
        to_field_name="slug",
        empty_label="all",
        required=False,
    )
    turns = forms.ChoiceField(
        label="Turns",
        choices=[("", "all"), ("single", "single-turn"), ("multi", "multi-turn")],
        required=False,
    )
    status = forms.ChoiceField(
        label="Status",
        choices=[("", "all"), *Conversation.Status.choices],
        required=False,
    )

    def __init__(self, *args: object, collection: Collection, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices = self.fields["subcategory"]
        assert isinstance(choices, forms.ModelChoiceField)
        choices.queryset = Subcategory.objects.filter(collection=collection)

    @property
    def multi_turn(self) -> bool | None:
        """Return the chosen kind of conversation, None for both."""
        return {"single": False, "multi": True}.get(self.cleaned_data["turns"])

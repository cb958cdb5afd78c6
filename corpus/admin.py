"""The corpus in the admin site: names and descriptions are edited here, content never changes."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest

from corpus.models import (
    Collection,
    Conversation,
    Criterion,
    Dimension,
    Reply,
    Respondent,
    Rubric,
    RubricItem,
    Subcategory,
)
from distressbench_site.accounts.admin import ReadOnly, ReadOnlyAdmin
from distressbench_site.accounts.roles import current_user
from distressbench_site.accounts.services import record_audit


class WordingAdmin(ReadOnlyAdmin):
    """A table whose names and descriptions can be edited; each edit is in the audit log."""

    wording = ("name", "description")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let admins edit the wording."""
        return self.has_view_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Return every field but the wording."""
        names = [field.name for field in self.model._meta.fields]
        return [name for name in names if name not in self.wording]

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:  # type: ignore[type-arg]
        """Save the wording and write down what it was."""
        before = {name: form.initial.get(name) for name in form.changed_data}
        obj.save(update_fields=list(self.wording))
        record_audit(
            actor=current_user(request),
            action="wording changed",
            target=f"{obj._meta.verbose_name} {getattr(obj, 'slug', obj.pk)}",
            detail={"before": before, "after": {name: getattr(obj, name) for name in before}},
        )


@admin.register(Collection)
class CollectionAdmin(WordingAdmin):
    """Collections."""

    list_display = ("slug", "name")


@admin.register(Dimension)
class DimensionAdmin(WordingAdmin):
    """Dimensions; the stance is fixed, as scores depend on it."""

    list_display = ("name", "collection", "slug", "stance", "position")
    list_filter = ("collection",)
    list_select_related = ("collection",)


@admin.register(Subcategory)
class SubcategoryAdmin(WordingAdmin):
    """Subcategories."""

    list_display = ("name", "collection", "slug", "position")
    list_filter = ("collection",)
    list_select_related = ("collection",)


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    """Conversations."""

    list_display = ("key", "collection", "subcategory", "locale", "multi_turn", "status")
    list_filter = ("collection", "status", "multi_turn")
    list_select_related = ("collection", "subcategory")
    search_fields = ("key",)


@admin.register(Criterion)
class CriterionAdmin(ReadOnlyAdmin):
    """Criteria."""

    list_display = ("key", "conversation", "text")
    list_filter = ("conversation__collection",)
    list_select_related = ("conversation",)
    search_fields = ("key", "text", "conversation__key")


class RubricItemInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    """The criteria of a rubric with weight and dimension."""

    model = RubricItem
    fields = ("position", "criterion", "dimension", "weight")
    readonly_fields = fields
    extra = 0
    can_delete = False


@admin.register(Rubric)
class RubricAdmin(ReadOnlyAdmin):
    """Rubrics with their items."""

    list_display = ("conversation", "version", "status", "published_at")
    list_filter = ("status", "conversation__collection")
    list_select_related = ("conversation",)
    search_fields = ("conversation__key",)
    inlines = (RubricItemInline,)


@admin.register(Respondent)
class RespondentAdmin(ReadOnlyAdmin):
    """Respondents."""

    list_display = ("slug", "name", "kind", "family")
    list_filter = ("kind",)


@admin.register(Reply)
class ReplyAdmin(ReadOnlyAdmin):
    """Replies."""

    list_display = ("id", "conversation", "respondent", "sample", "outcome")
    list_filter = ("conversation__collection", "outcome", "respondent")
    list_select_related = ("conversation", "respondent")
    search_fields = ("conversation__key",)

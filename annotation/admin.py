"""Rounds and annotators in the admin site: to look at, hardly to change."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from annotation.models import Annotator, Round


@admin.register(Round)
class RoundAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rounds, to read; their states change on their own pages, where the rules are."""

    list_display = ["name", "collection", "purpose", "status", "overlap", "created_at"]
    list_filter = ["status", "purpose", "collection"]
    search_fields = ["name"]
    date_hierarchy = "created_at"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rounds are made on their own page."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rounds are changed on their own page."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rounds stay."""
        return False


@admin.register(Annotator)
class AnnotatorAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Pseudonyms, and the account behind each where there is one."""

    list_display = ["pseudonym", "user"]
    search_fields = ["pseudonym"]
    fields = ["pseudonym", "user"]
    readonly_fields = ["pseudonym"]
    raw_id_fields = ["user"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Annotators come with their first round or with an import."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """People with labels are never deleted."""
        return False

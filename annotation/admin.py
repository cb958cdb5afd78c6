"""Rounds and annotators in the admin site: to look at, hardly to change."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from annotation.models import Annotator, Round
from distressbench_site.accounts.admin import ReadOnlyAdmin


@admin.register(Round)
class RoundAdmin(ReadOnlyAdmin):
    """Rounds, to read; their states change on their own pages, where the rules are."""

    list_display = ["name", "collection", "purpose", "status", "overlap", "created_at"]
    list_filter = ["status", "purpose", "collection"]
    search_fields = ["name"]
    date_hierarchy = "created_at"


@admin.register(Annotator)
class AnnotatorAdmin(ReadOnlyAdmin):
    """Pseudonyms, and the account behind each where there is one."""

    list_display = ["pseudonym", "user"]
    search_fields = ["pseudonym"]
    fields = ["pseudonym", "user"]
    readonly_fields = ["pseudonym"]
    raw_id_fields = ["user"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let admins link an account to a pseudonym that came with an import."""
        return self.has_view_permission(request, obj)

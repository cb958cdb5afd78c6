"""People in the admin site: to look at; the pages under /people/ change them and keep the log."""

from typing import Any

from allauth.account import admin as _addresses  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa import admin as _second_factors  # noqa: F401
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth import admin as _groups  # noqa: F401
from django.contrib.auth.models import Group
from django.http import HttpRequest

from distressbench_site.accounts.models import AuditEvent, Invitation, User

admin.site.site_header = admin.site.site_title = "DistressBench tables"
admin.site.index_title = "To look things up"

# Roles are given under /people/ alone; addresses and second factors belong to their person.
# The imports above have registered them, whatever the order of the apps.
admin.site.unregister([Group, EmailAddress, Authenticator])


class ReadOnly:
    """Rows to look at: nothing is added, changed or deleted. The backend says who may look."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leave adding to the pages and to import."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leave changes to the pages, where the rules are."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Delete nothing."""
        return False


class ReadOnlyAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """A table to look at."""


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    """People."""

    list_display = ("email", "name", "is_active", "last_login")
    search_fields = ("email", "name")
    exclude = ("password", "user_permissions")


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Invitations."""

    list_display = ("email", "created_at", "expires_at", "accepted_at")
    exclude = ("token_digest",)


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """The audit log."""

    list_display = ("at", "actor", "action", "target")
    list_select_related = ("actor",)
    search_fields = ("action", "target", "actor__email")

"""What an admin may do in the admin site."""

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AnonymousUser

from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import ADMIN, has_role


class RoleBackend(BaseBackend):
    """Give the role admin every permission; what nobody may do, the admin pages and guards say."""

    def has_perm(self, user_obj: User | AnonymousUser, perm: str, obj: Any = None) -> bool:
        """Return whether the person is an admin."""
        return has_role(user_obj, ADMIN)

    def has_module_perms(self, user_obj: User | AnonymousUser, app_label: str) -> bool:
        """Return whether the person is an admin; a superuser is one in Django's own terms."""
        return has_role(user_obj, ADMIN)

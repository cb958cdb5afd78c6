"""Roles are groups; one person may hold several."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

from distressbench_site.accounts.models import User

CLINICIAN = "clinician"
SENIOR_CLINICIAN = "senior clinician"
RESEARCHER = "researcher"
ADMIN = "admin"
ROLES = (CLINICIAN, SENIOR_CLINICIAN, RESEARCHER, ADMIN)

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def roles_of(user: User | AnonymousUser) -> frozenset[str]:
    """Return the roles that a person holds, read once per person object."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    cached: frozenset[str] | None = getattr(user, "_roles", None)
    if cached is None:
        cached = frozenset(user.groups.values_list("name", flat=True)) & frozenset(ROLES)
        if user.is_superuser:
            # The first person of an installation, made by createsuperuser, can let others in.
            cached |= {ADMIN}
        user._roles = cached  # type: ignore[attr-defined]
    return cached


def has_role(user: User | AnonymousUser, *roles: str) -> bool:
    """Return whether a person holds one of the roles."""
    return not roles_of(user).isdisjoint(roles)


def role_required(*roles: str) -> Callable[[View[P]], View[P]]:
    """Refuse a view with 403 to people who hold none of the roles."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not has_role(request.user, *roles):
                raise PermissionDenied("This page needs the role " + " or ".join(roles) + ".")
            return view(request, *args, **kwargs)

        guarded.roles = roles  # type: ignore[attr-defined]
        return guarded

    return decorate


def current_user(request: HttpRequest) -> User:
    """Return the signed-in person; the sign-in middleware has made sure that there is one."""
    user: Any = request.user
    if not isinstance(user, User):
        raise PermissionDenied("Please sign in.")
    return user

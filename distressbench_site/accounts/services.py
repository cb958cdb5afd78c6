"""Writes about people: invitations, roles, the audit log."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from distressbench_site.accounts.models import AuditEvent, Invitation, User
from distressbench_site.accounts.roles import ADMIN, ROLES, has_role

INVITATION_KEY = "invitation"
INVITATION_DAYS = 14


def record_audit(
    *, actor: User | None, action: str, target: object = "", detail: Mapping[str, Any] | None = None
) -> AuditEvent:
    """Write one line of the audit log."""
    return AuditEvent.objects.create(
        actor=actor, action=action, target=str(target)[:200], detail=dict(detail or {})
    )


@transaction.atomic
def set_roles(*, user: User, roles: Iterable[str], actor: User | None) -> None:
    """Give a person exactly these roles; an admin may open the admin site."""
    wanted = set(roles)
    unknown = wanted - set(ROLES)
    if unknown:
        raise ValidationError(f"There is no role {', '.join(sorted(unknown))}.")
    if actor is not None and actor.pk == user.pk and ADMIN not in wanted and has_role(user, ADMIN):
        # So there is always an admin left who can undo it.
        raise ValidationError("Ask another admin to take the role admin from you.")
    user.groups.set(Group.objects.filter(name__in=wanted))
    user.is_staff = user.is_superuser or ADMIN in wanted
    user.save(update_fields=["is_staff"])
    user.__dict__.pop("_roles", None)
    record_audit(
        actor=actor, action="roles set", target=user.email, detail={"roles": sorted(wanted)}
    )


@transaction.atomic
def invite_person(*, email: str, roles: Iterable[str], invited_by: User) -> tuple[Invitation, str]:
    """Invite a person; returns the invitation and the token of its link, shown once."""
    address = email.strip().lower()
    wanted = sorted(set(roles))
    if not wanted or set(wanted) - set(ROLES):
        raise ValidationError({"roles": "Choose at least one role."})
    if User.objects.filter(email__iexact=address).exists():
        raise ValidationError({"email": "There is a person with this e-mail address already."})
    # One link per person: an older one stops working.
    Invitation.objects.filter(
        email=address, accepted_at__isnull=True, expires_at__gt=timezone.now()
    ).update(expires_at=timezone.now())
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        email=address,
        roles=wanted,
        token_digest=_digest(token),
        invited_by=invited_by,
        expires_at=timezone.now() + timedelta(days=INVITATION_DAYS),
    )
    record_audit(
        actor=invited_by, action="person invited", target=address, detail={"roles": wanted}
    )
    return invitation, token


@transaction.atomic
def withdraw_invitation(*, invitation_id: int, actor: User) -> None:
    """Make the link of an open invitation worthless."""
    invitation = Invitation.objects.filter(pk=invitation_id).first()
    touched = Invitation.objects.filter(
        pk=invitation_id, accepted_at__isnull=True, expires_at__gt=timezone.now()
    ).update(expires_at=timezone.now())
    if invitation is None or touched != 1:
        raise ValidationError("This invitation is not open any more.")
    record_audit(actor=actor, action="invitation withdrawn", target=invitation.email)


@transaction.atomic
def deactivate_person(*, user_id: int, actor: User) -> User:
    """Take away the sign-in of a person; what they did stays."""
    if user_id == actor.pk:
        raise ValidationError("Ask another admin to close your own account.")
    return _set_active(user_id=user_id, active=False, actor=actor)


@transaction.atomic
def reactivate_person(*, user_id: int, actor: User) -> User:
    """Give a person the sign-in back."""
    return _set_active(user_id=user_id, active=True, actor=actor)


def find_invitation(token: str) -> Invitation | None:
    """Return the invitation that a link's token belongs to, if it is still good."""
    return Invitation.objects.filter(
        token_digest=_digest(token), accepted_at__isnull=True, expires_at__gt=timezone.now()
    ).first()


def invitation_of(session: Any) -> Invitation | None:
    """Return the invitation that a browser came with, if it is still good."""
    token = session.get(INVITATION_KEY)
    return find_invitation(token) if token else None


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User) -> User:
    """Save the invited person with the invitation's address and roles; works once."""
    user.email = invitation.email
    user.save()
    taken = Invitation.objects.filter(pk=invitation.pk, accepted_at__isnull=True).update(
        accepted_at=timezone.now(), accepted_by=user
    )
    if taken != 1:
        raise ValidationError("This invitation has been used.")
    set_roles(user=user, roles=invitation.roles, actor=invitation.invited_by)
    record_audit(actor=user, action="invitation accepted", target=user.email)
    return user


def _set_active(*, user_id: int, active: bool, actor: User) -> User:
    touched = User.objects.filter(pk=user_id, is_active=not active).update(is_active=active)
    if touched != 1:
        raise ValidationError("This account was changed meanwhile. Please look again.")
    user = User.objects.get(pk=user_id)
    action = "person reactivated" if active else "person deactivated"
    record_audit(actor=actor, action=action, target=user.email)
    return user


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

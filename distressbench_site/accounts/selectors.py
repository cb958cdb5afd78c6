"""Reads about people and about what they did."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.utils import timezone

from distressbench_site.accounts.models import AuditEvent, Invitation, User
from distressbench_site.accounts.roles import ROLES


@dataclass(frozen=True)
class PersonLine:
    """A person and the roles they hold, in the order of `ROLES`."""

    user: User
    roles: list[str]


def people() -> list[PersonLine]:
    """Return everybody with an account, those who may sign in first."""
    users = User.objects.prefetch_related("groups").order_by("-is_active", "name", "email")
    lines = []
    for user in users:
        held = {group.name for group in user.groups.all()}
        lines.append(PersonLine(user, [role for role in ROLES if role in held]))
    return lines


def open_invitations() -> QuerySet[Invitation]:
    """Return the invitations that can still be accepted, newest first."""
    return (
        Invitation.objects.filter(accepted_at__isnull=True, expires_at__gt=timezone.now())
        .select_related("invited_by")
        .order_by("-created_at")
    )


def audit_events(*, action: str = "", words: str = "") -> QuerySet[AuditEvent]:
    """Return the audit log, newest first, where act and words match."""
    events = AuditEvent.objects.select_related("actor").order_by("-id")
    if action:
        events = events.filter(action=action)
    if words:
        events = events.filter(
            Q(target__icontains=words)
            | Q(actor__email__icontains=words)
            | Q(actor__name__icontains=words)
        )
    return events


def details_of(event: AuditEvent) -> list[str]:
    """Return the details of an event, each in one line to read."""
    lines = []
    for key, value in event.detail.items():
        shown = ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
        lines.append(f"{key.replace('_', ' ')}: {shown}")
    return lines


def audit_actions() -> list[str]:
    """Return the acts that the audit log knows."""
    return list(AuditEvent.objects.order_by("action").values_list("action", flat=True).distinct())

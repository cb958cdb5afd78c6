"""People, their invitations, and what they did that matters later."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone


class UserManager(BaseUserManager["User"]):
    """Make people by e-mail address."""

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> "User":
        """Create a person; without a password nobody can sign in as them."""
        if not email:
            raise ValueError("A person needs an e-mail address")
        user = self.model(email=self.normalize_email(email).lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> "User":
        """Create a person who may do everything in the admin site."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)

    def get_by_natural_key(self, username: str | None) -> "User":
        """Find a person by e-mail address, whatever its case."""
        return self.get(email__iexact=username)


class User(AbstractBaseUser, PermissionsMixin):
    """A person with an account, known by an e-mail address."""

    email = models.EmailField("e-mail address")
    name = models.CharField("name", max_length=150, blank=True)
    is_staff = models.BooleanField("may open the admin site", default=False)
    is_active = models.BooleanField("may sign in", default=True)
    date_joined = models.DateTimeField("joined", default=timezone.now)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = "person"
        verbose_name_plural = "people"
        constraints = [
            models.UniqueConstraint(
                Lower("email"),
                name="accounts_user_email_unique",
                violation_error_message="There is a person with this e-mail address already.",
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.email


class Invitation(models.Model):
    """One person's way to an account; the link's token itself is never stored."""

    email = models.EmailField("e-mail address")
    roles = models.JSONField("roles", default=list)
    token_digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="invitations_sent")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="invitations_accepted"
    )

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"invitation of {self.email}"


class AuditEvent(models.Model):
    """One act that somebody may need to explain later; append-only."""

    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="audit_events"
    )
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.target}".strip()

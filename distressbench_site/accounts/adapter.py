"""Who may make an account: people with an invitation."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import HttpRequest
from django.shortcuts import redirect

from distressbench_site.accounts import services
from distressbench_site.accounts.models import User


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Open the sign-up to a browser that came through an invitation, and to nobody else."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether this browser holds an invitation that is still good."""
        return services.invitation_of(request.session) is not None

    def clean_email(self, email: str) -> str:
        """Keep addresses in one case, as they are compared."""
        return str(super().clean_email(email)).lower()

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Create the account that the invitation was for, with its address and its roles."""
        invitation = services.invitation_of(request.session)
        if invitation is None:
            raise ImmediateHttpResponse(redirect("account_signup"))
        form.cleaned_data["email"] = invitation.email
        user.name = form.cleaned_data.get("name", "")
        user = super().save_user(request, user, form, commit=False)
        try:
            services.accept_invitation(invitation=invitation, user=user)
        except (ValidationError, IntegrityError) as error:
            # Somebody was quicker with the same link: sign-up says that it is closed.
            raise ImmediateHttpResponse(redirect("account_signup")) from error
        request.session.pop(services.INVITATION_KEY, None)
        return user

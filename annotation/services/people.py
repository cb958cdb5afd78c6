"""Annotators and the accounts behind them."""

import secrets

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from annotation.models import Annotator
from distressbench_site.accounts.models import User

_ATTEMPTS = 8


def annotator_for(*, user: User) -> Annotator:
    """Return the annotator of an account, made at need under a pseudonym that tells nothing."""
    for _ in range(_ATTEMPTS):
        found = Annotator.objects.filter(user=user).first()
        if found is not None:
            return found
        try:
            with transaction.atomic():
                return Annotator.objects.create(
                    user=user, pseudonym=f"clinician-{secrets.token_hex(3)}"
                )
        except IntegrityError:
            # The pseudonym is taken, or another request made the annotator first.
            continue
    raise ValidationError("No free pseudonym was found. Please try again.")

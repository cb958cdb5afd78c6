"""Annotators and the accounts behind them."""

import secrets
from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from annotation.models import Annotator, Round
from distressbench_site.accounts.models import AuditEvent, User
from distressbench_site.accounts.roles import RESEARCHER
from distressbench_site.accounts.services import record_audit

_ATTEMPTS = 8
OVERRIDE = "researcher let label"


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


def barred_from(round_: Round, annotators: Iterable[Annotator]) -> list[Annotator]:
    """Return who holds the role researcher and so labels in a practice round alone.

    Whoever was let in by an override is not barred.
    """
    if round_.purpose == Round.Purpose.PRACTICE:
        return []
    asked = [annotator for annotator in annotators if annotator.user_id is not None]
    researchers = set(
        User.objects.filter(
            pk__in=[annotator.user_id for annotator in asked], groups__name=RESEARCHER
        ).values_list("pk", flat=True)
    )
    if not researchers:
        return []
    let_in = set(
        AuditEvent.objects.filter(action=OVERRIDE, detail__round=round_.pk).values_list(
            "detail__annotator", flat=True
        )
    )
    return [
        annotator
        for annotator in asked
        if annotator.user_id in researchers and annotator.pseudonym not in let_in
    ]


def admit_annotators(
    *, round_: Round, annotators: Iterable[Annotator], reason: str, actor: User | None
) -> None:
    """Refuse researchers as annotators of a round, or write down why they label nevertheless."""
    barred = barred_from(round_, annotators)
    if not barred:
        return
    if not reason.strip():
        names = ", ".join(str(annotator.user) for annotator in barred)
        raise ValidationError(
            f"Somebody with the role researcher labels in practice rounds alone: {names}."
            " An exception needs a reason."
        )
    for annotator in barred:
        record_audit(
            actor=actor,
            action=OVERRIDE,
            target=round_.name,
            detail={
                "round": round_.pk,
                "annotator": annotator.pseudonym,
                "reason": reason.strip(),
            },
        )

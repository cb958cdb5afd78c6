"""What people fill in about people."""

from typing import Any

from allauth.account.forms import SignupForm
from allauth.core import context
from django import forms

from distressbench_site.accounts import services
from distressbench_site.accounts.roles import ADMIN, CLINICIAN, RESEARCHER, SENIOR_CLINICIAN

_ROLE_CHOICES = [
    (CLINICIAN, "Clinician: labels replies"),
    (SENIOR_CLINICIAN, "Senior clinician: also decides disputes"),
    (RESEARCHER, "Researcher: sets up rounds, judges, runs and results"),
    (ADMIN, "Admin: imports, rubrics, people"),
]


class RolesForm(forms.Form):
    """The roles of one person."""

    roles = forms.MultipleChoiceField(
        choices=_ROLE_CHOICES, widget=forms.CheckboxSelectMultiple, required=False
    )


class InvitationForm(RolesForm):
    """Whom to invite, and what they will do here."""

    email = forms.EmailField(label="E-mail address")
    roles = forms.MultipleChoiceField(
        choices=_ROLE_CHOICES,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one role."},
    )
    field_order = ["email", "roles"]


class AuditFilterForm(forms.Form):
    """Which part of the audit log to show."""

    action = forms.ChoiceField(label="Act", required=False)
    words = forms.CharField(label="Person or object", required=False, max_length=100)

    def __init__(self, *args: Any, actions: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "All acts"), *((action, action) for action in actions)]
        self.fields["action"] = forms.ChoiceField(label="Act", required=False, choices=choices)


class InvitedSignupForm(SignupForm):  # type: ignore[misc]
    """Sign-up with the address that was invited, which nobody can change here."""

    field_order = ["email", "name", "password1", "password2"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"] = forms.CharField(
            label="Your name",
            max_length=150,
            help_text="Shown to admins. Labels carry a pseudonym instead.",
            widget=forms.TextInput(attrs={"autocomplete": "name"}),
        )
        self.order_fields(self.field_order)
        invitation = services.invitation_of(context.request.session)
        address = self.fields["email"]
        address.label = "E-mail address"
        # A disabled field takes its value from here, whatever the browser sends.
        address.disabled = True
        address.initial = invitation.email if invitation else ""

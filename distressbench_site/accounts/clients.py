"""Messages to people."""

from django.core.mail import send_mail
from django.template.loader import render_to_string

from distressbench_site.accounts.models import Invitation


def send_invitation(*, invitation: Invitation, link: str) -> None:
    """Send the link of an invitation to its address; raises OSError where the server is away."""
    send_mail(
        subject="Your invitation to DistressBench",
        message=render_to_string(
            "accounts/invitation.txt", {"invitation": invitation, "link": link}
        ),
        from_email=None,
        recipient_list=[invitation.email],
    )

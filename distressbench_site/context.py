"""What every page shows around its content: navigation by role and where to find support."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from distressbench_site.accounts.roles import (
    ADMIN,
    CLINICIAN,
    RESEARCHER,
    SENIOR_CLINICIAN,
    roles_of,
)

# Who sees the entry, the name of its URL, its label.
_NAV: list[tuple[set[str], str, str]] = [
    ({CLINICIAN, SENIOR_CLINICIAN}, "labelling-home", "My rounds"),
    ({RESEARCHER, ADMIN}, "round-list", "Rounds"),
    ({RESEARCHER, ADMIN}, "judge-list", "Judges"),
    ({RESEARCHER, ADMIN}, "run-list", "Runs"),
    ({RESEARCHER, ADMIN}, "result-list", "Results"),
    ({RESEARCHER, ADMIN}, "collection-list", "Conversations"),
    ({ADMIN}, "person-list", "People"),
    ({ADMIN}, "audit-list", "Audit log"),
]


def page_frame(request: HttpRequest) -> dict[str, Any]:
    """Return the navigation of this person and the support contacts."""
    roles = roles_of(request.user) if hasattr(request, "user") else frozenset()
    entries = [(reverse(name), label) for wanted, name, label in _NAV if roles & wanted]
    matching = [url for url, _ in entries if request.path.startswith(url)]
    current = max(matching, key=len, default="")
    return {
        "nav": [{"url": url, "label": label, "current": url == current} for url, label in entries],
        "roles": roles,
        "support_contacts": settings.SUPPORT_CONTACTS,
        "local_contact": settings.LOCAL_CONTACT,
    }

"""Pages about people: who they are, how they come in, what they did."""

import logging

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from distressbench_site.accounts import clients, selectors, services
from distressbench_site.accounts.forms import AuditFilterForm, InvitationForm, RolesForm
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import ADMIN, current_user, role_required

logger = logging.getLogger(__name__)

_get_or_post = require_http_methods(["GET", "HEAD", "POST"])


@require_safe
@role_required(ADMIN)
def person_list(request: HttpRequest) -> HttpResponse:
    """List everybody, and the invitations that are open."""
    context = {"people": selectors.people(), "invitations": selectors.open_invitations()}
    return render(request, "accounts/person_list.html", context)


@_get_or_post
@never_cache
@role_required(ADMIN)
def person_invite(request: HttpRequest) -> HttpResponse:
    """Invite a person by e-mail, and show the link this one time."""
    form = InvitationForm(request.POST or None)
    if request.method != "POST":
        return render(request, "accounts/person_invite.html", {"form": form})
    if form.is_valid():
        try:
            invitation, token = services.invite_person(
                email=form.cleaned_data["email"],
                roles=form.cleaned_data["roles"],
                invited_by=current_user(request),
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            link = request.build_absolute_uri(reverse("invitation-accept", args=[token]))
            sent = True
            try:
                clients.send_invitation(invitation=invitation, link=link)
            except OSError:
                logger.exception("the invitation could not be sent")
                sent = False
            context = {"invitation": invitation, "link": link, "sent": sent}
            return render(request, "accounts/person_invited.html", context)
    return render(request, "accounts/person_invite.html", {"form": form}, status=422)


@require_POST
@role_required(ADMIN)
def invitation_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw an open invitation."""
    try:
        services.withdraw_invitation(invitation_id=pk, actor=current_user(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, "The invitation is withdrawn; its link no longer works.")
    return redirect("person-list")


@_get_or_post
@role_required(ADMIN)
def person_roles(request: HttpRequest, pk: int) -> HttpResponse:
    """Change what a person may do here."""
    person = get_object_or_404(User, pk=pk)
    held = list(person.groups.values_list("name", flat=True))
    form = RolesForm(request.POST or None, initial={"roles": held})
    if request.method == "POST":
        form = RolesForm(request.POST)
        if form.is_valid():
            roles = form.cleaned_data["roles"]
            try:
                services.set_roles(user=person, roles=roles, actor=current_user(request))
            except ValidationError as error:
                form.add_error("roles", error)
            else:
                messages.success(request, f"The roles of {person} are saved.")
                return redirect("person-list")
    status = 422 if form.is_bound else 200
    context = {"person": person, "form": form}
    return render(request, "accounts/person_roles.html", context, status=status)


@_get_or_post
@role_required(ADMIN)
def person_deactivate(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, and then close a person's account; nothing that they did is deleted."""
    person = get_object_or_404(User, pk=pk)
    if request.method != "POST":
        return render(request, "accounts/person_deactivate.html", {"person": person})
    try:
        services.deactivate_person(user_id=pk, actor=current_user(request))
    except ValidationError as error:
        context = {"person": person, "problem": " ".join(error.messages)}
        return render(request, "accounts/person_deactivate.html", context, status=422)
    messages.success(request, f"The account of {person} is closed. Their labels stay.")
    return redirect("person-list")


@require_POST
@role_required(ADMIN)
def person_reactivate(request: HttpRequest, pk: int) -> HttpResponse:
    """Open a closed account again."""
    person = get_object_or_404(User, pk=pk)
    try:
        services.reactivate_person(user_id=pk, actor=current_user(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, f"{person} can sign in again.")
    return redirect("person-list")


@login_not_required
@never_cache
@_get_or_post
def invitation_accept(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation, and take the person who has its link to the sign-up."""
    invitation = services.find_invitation(token)
    if invitation is None:
        return render(request, "accounts/invitation_closed.html", status=404)
    if request.method != "POST" or request.user.is_authenticated:
        context = {"invitation": invitation, "token": token}
        return render(request, "accounts/invitation_accept.html", context)
    request.session[services.INVITATION_KEY] = token
    return redirect("account_signup")


@require_safe
@role_required(ADMIN)
def audit_list(request: HttpRequest) -> HttpResponse:
    """List what was done, newest first."""
    form = AuditFilterForm(request.GET, actions=selectors.audit_actions())
    wanted = form.cleaned_data if form.is_valid() else {}
    events = selectors.audit_events(
        action=wanted.get("action", ""), words=wanted.get("words", "").strip()
    )
    page = Paginator(events, 50).get_page(request.GET.get("page"))
    lines = [(event, selectors.details_of(event)) for event in page]
    context = {"page_obj": page, "lines": lines, "form": form}
    return render(request, "accounts/audit_list.html", context)

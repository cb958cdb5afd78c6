"""What holds for every request: a busy database is said, and a lapsed session never hides."""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django_htmx.http import HttpResponseClientRedirect

logger = logging.getLogger(__name__)


class BusyDatabaseMiddleware:
    """Answer 503 where the database is locked or away, so that the browser tries again."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Turn the database's refusal into a 503; everything else goes on as it is."""
        if not isinstance(error, OperationalError):
            return None
        logger.warning("database unavailable at %s: %s", request.path, error)
        return busy_response()


def calm_page(template: str, *, status: int) -> HttpResponse:
    """Render an error page that needs neither database nor session."""
    words = {
        "support_contacts": settings.SUPPORT_CONTACTS,
        "local_contact": settings.LOCAL_CONTACT,
    }
    return HttpResponse(render_to_string(template, words), status=status)


def busy_response() -> HttpResponse:
    """Return the page that asks to try again, and tell programs when."""
    response = calm_page("503.html", status=503)
    response["Retry-After"] = "2"
    return response


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """Ask for sign-in on every view; a fragment request gets an answer that its page can use."""

    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        """Answer 401 to a save, a redirect of the whole page to a fragment, else a redirect."""
        if getattr(view_func, "answers_401", False) and getattr(request, "htmx", False):
            return HttpResponse("Please sign in again.", status=401, content_type="text/plain")
        if getattr(request, "htmx", False):
            page = urlsplit(request.headers.get("HX-Current-URL", ""))
            current = page._replace(scheme="", netloc="", fragment="").geturl()
            login = redirect_to_login(current or "/", self.get_login_url(view_func))
            return HttpResponseClientRedirect(login.url)
        return super().handle_no_permission(request, view_func)

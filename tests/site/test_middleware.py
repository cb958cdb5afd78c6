"""A busy database is said calmly, and a lapsed session never hides in a fragment."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db import OperationalError, connection, connections
from django.http import HttpResponse
from django.test import Client
from django.urls import include, path, reverse

from distressbench_site.accounts.models import AuditEvent, User
from distressbench_site.middleware import SignInRequiredMiddleware
from tests.factories import PASSWORD, make_user

HTMX = {"HTTP_HX_REQUEST": "true"}


@login_not_required
def _failing(request):
    raise OperationalError("the server is away")


@login_not_required
def _wrong(request):
    raise RuntimeError("a mistake")


handler500 = "distressbench_site.views.server_error"
urlpatterns = [
    path("away/", _failing),
    path("wrong/", _wrong),
    path("", include("distressbench_site.urls")),
]


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Hold a real lock from another connection."""
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with connections["default"].cursor() as cursor:
            if connections["default"].vendor == "sqlite":
                cursor.execute("BEGIN IMMEDIATE")
            else:
                cursor.execute("BEGIN")
                cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            holding.set()
            done.wait(30)
            cursor.execute("ROLLBACK")
        connections["default"].close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(10)
    try:
        yield
    finally:
        done.set()
        thread.join()


def hurry() -> None:
    """Give up on a lock soon, so that the test need not wait as long as a visitor would."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA busy_timeout = 100")
        else:
            cursor.execute("SET lock_timeout = '100ms'")


@pytest.fixture
def client() -> Iterator[Client]:
    """A browser that sees the page of an error, as people do."""
    cache.clear()
    yield Client(raise_request_exception=False)
    connection.close()


def assert_busy(answer) -> None:
    assert answer.status_code == 503
    assert answer["Retry-After"] == "2"
    page = answer.content.decode()
    assert "Busy for a moment" in page
    assert "Samaritans" in page
    assert answer["Content-Security-Policy"]


@pytest.mark.django_db(transaction=True)
def test_a_locked_database_is_said_where_a_view_writes(client):
    admin = make_user(roles=["admin"])
    client.force_login(admin)
    url = reverse("person-invite")
    data = {"email": "new@example.org", "roles": ["clinician"]}
    hurry()

    with locked("accounts_auditevent"):
        assert_busy(client.post(url, data))
    assert not AuditEvent.objects.exists()

    assert client.post(url, data).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_locked_database_is_said_where_the_session_is_read_or_written(client):
    user = make_user(roles=["clinician"])
    data = {"login": user.email, "password": PASSWORD}
    hurry()

    with locked("django_session"):
        assert_busy(client.post(reverse("account_login"), data))

    assert client.post(reverse("account_login"), data).status_code == 302
    assert User.objects.get(pk=user.pk).last_login


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_locked_session_table_is_said_before_any_view_on_postgresql(client):
    client.force_login(make_user(roles=["admin"]))
    hurry()

    with locked("django_session"):
        assert_busy(client.get(reverse("person-list")))


@pytest.mark.urls("tests.site.test_middleware")
@pytest.mark.no_database
def test_the_page_for_a_database_that_is_away_needs_no_database(client):
    assert_busy(client.get("/away/"))


@pytest.mark.urls("tests.site.test_middleware")
@pytest.mark.no_database
def test_any_other_fault_is_a_calm_page_too(client):
    answer = client.get("/wrong/")

    assert answer.status_code == 500
    assert "Samaritans" in answer.content.decode()
    assert "a mistake" not in answer.content.decode()


@pytest.mark.django_db
class TestLapsedSession:
    def test_a_page_sends_to_the_sign_in(self, client):
        url = reverse("round-list")
        assert client.get(url)["Location"] == f"{reverse('account_login')}?next={url}"

    def test_a_fragment_sends_the_whole_page_to_the_sign_in(self, client):
        answer = client.get(
            reverse("run-detail", args=[1]),
            HTTP_HX_CURRENT_URL="http://testserver/runs/1/?page=2#top",
            **HTMX,
        )

        assert answer.status_code == 200
        assert answer["HX-Redirect"] == "/account/login/?next=/runs/1/%3Fpage%3D2"
        assert answer.content == b""

    @pytest.mark.parametrize("address", ["", "https://elsewhere.example", "not an address"])
    def test_a_strange_address_of_the_page_leads_nowhere_else(self, client, address):
        answer = client.get(reverse("run-list"), HTTP_HX_CURRENT_URL=address, **HTMX)

        assert answer["HX-Redirect"].startswith("/account/login/?next=")
        assert "elsewhere" not in answer["HX-Redirect"]

    def test_a_save_is_told_so_that_the_page_can_keep_it(self, client):
        answer = client.post(reverse("label-save", args=[1, 1]), {"value": "met"}, **HTMX)

        assert answer.status_code == 401
        assert "HX-Redirect" not in answer
        assert "<html" not in answer.content.decode()

    def test_a_save_without_javascript_sends_to_the_sign_in(self, client):
        answer = client.post(reverse("label-save", args=[1, 1]), {"value": "met"})

        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("account_login"))


def test_every_view_asks_for_sign_in_unless_it_says_otherwise(rf):
    def view(request):
        return HttpResponse("secret")

    from django.contrib.auth.models import AnonymousUser

    request = rf.get("/x/")
    request.user = AnonymousUser()
    asked = SignInRequiredMiddleware(view).process_view(request, view, (), {})
    assert asked.status_code == 302


@pytest.mark.django_db
class TestHeaders:
    PAGES = ("/account/login/", "/nowhere/", "/healthz", "/admin/login/", "/invitations/x/")

    @pytest.mark.parametrize("address", PAGES)
    def test_the_policy_allows_nothing_inline_and_nobody_else(self, client, address):
        policy = client.get(address)["Content-Security-Policy"]

        rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert rules == {
            "default-src": "'self'",
            "img-src": "'self' data:",
            "object-src": "'none'",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
            "form-action": "'self'",
        }

    @pytest.mark.parametrize("address", PAGES)
    def test_the_browser_is_told_to_be_careful(self, client, address):
        answer = client.get(address)

        assert answer["X-Frame-Options"] == "DENY"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        assert answer["Cross-Origin-Opener-Policy"] == "same-origin"

    def test_the_session_cookie_is_out_of_reach_of_scripts(self, client):
        user = make_user()
        answer = client.post(reverse("account_login"), {"login": user.email, "password": PASSWORD})
        assert answer.cookies["sessionid"]["httponly"]
        assert answer.cookies["sessionid"]["samesite"] == "Lax"

    def test_a_form_from_elsewhere_is_refused(self):
        careful = Client(enforce_csrf_checks=True)
        user = make_user()
        answer = careful.post(reverse("account_login"), {"login": user.email, "password": PASSWORD})
        assert answer.status_code == 403
        assert 'class="bar"' in answer.content.decode()

    def test_a_name_that_is_not_ours_is_refused(self, client):
        assert client.get("/account/login/", HTTP_HOST="elsewhere.example").status_code == 400

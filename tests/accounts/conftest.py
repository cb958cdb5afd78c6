"""The cast of the tests about people."""

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client

from distressbench_site.accounts import services
from distressbench_site.accounts.models import User

PASSWORD = "a long walk by the river"


@pytest.fixture(autouse=True)
def _fresh_rate_limits() -> None:
    """Count sign-ins anew in each test."""
    cache.clear()


@pytest.fixture
def make_person(db: None) -> Callable[..., User]:
    """Return a maker of people with roles, who sign in with PASSWORD."""

    def make(email: str, *roles: str, name: str = "") -> User:
        user = User.objects.create_user(email, PASSWORD, name=name)
        services.set_roles(user=user, roles=roles, actor=None)
        return user

    return make


@pytest.fixture
def admin(make_person: Callable[..., User]) -> User:
    return make_person("admin@example.org", "admin", name="Ada Admin")


@pytest.fixture
def researcher(make_person: Callable[..., User]) -> User:
    return make_person("researcher@example.org", "researcher")


@pytest.fixture
def clinician(make_person: Callable[..., User]) -> User:
    return make_person("clinician@example.org", "clinician")


@pytest.fixture
def as_admin(admin: User, client: Client) -> Client:
    client.force_login(admin)
    return client

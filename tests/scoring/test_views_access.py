"""Who may open which page of the scoring app, and by which method."""

import pytest
from django.test import Client
from django.urls import reverse

from scoring import services
from scoring.models import CalibrationDecision, Run
from tests.factories import make_user
from tests.scoring.making import make_calibration, make_judge, make_judged_collection, make_run

pytestmark = pytest.mark.django_db

READ = {
    "judge-list": "",
    "baseline-train": "",
    "judge-detail": "judge",
    "calibration-create": "judge",
    "calibration-detail": "calibration",
    "run-list": "",
    "run-create": "",
    "run-detail": "run",
    "result-list": "",
    "leaderboard": "slug",
    "leaderboard-csv": "slug",
}
# These take a form on the same page.
FORMS = {"baseline-train", "calibration-create", "run-create"}
WRITE = {
    "calibration-decide": "calibration",
    "run-pause": "run",
    "run-resume": "run",
    "run-cancel": "run",
    "run-retry": "run",
}


@pytest.fixture
def world():
    judge = make_judge()
    collection = make_judged_collection(judge)
    run = make_run(judge, collection)
    services.refresh_scores(collection=collection, judge=judge)
    return {
        "judge": judge.pk,
        "calibration": make_calibration(judge, collection).pk,
        "run": run.pk,
        "slug": collection.slug,
    }


def urls(names, world):
    return [reverse(name, args=[world[key]] if key else []) for name, key in names.items()]


def signed_in(*roles: str) -> Client:
    client = Client()
    client.force_login(make_user(roles=roles))
    return client


@pytest.mark.parametrize("role", ["researcher", "admin"])
def test_researchers_and_admins_read_everything(world, role):
    client = signed_in(role)
    for url in urls(READ, world):
        assert client.get(url).status_code == 200, url


@pytest.mark.parametrize("roles", [("clinician",), ("senior clinician",), ()])
def test_clinicians_and_people_without_a_role_are_refused(world, roles):
    client = signed_in(*roles)
    for url in urls(READ, world):
        assert client.get(url).status_code == 403, url
    for url in urls({**WRITE, **dict.fromkeys(["baseline-train", "run-create"], "")}, world):
        assert client.post(url).status_code == 403, url
    assert Run.objects.get().status == "pending"
    assert not CalibrationDecision.objects.exists()


def test_anonymous_people_are_asked_to_sign_in(world):
    for url in urls({**READ, **WRITE}, world):
        response = Client().get(url)
        assert response.status_code == 302, url
        assert response["Location"].startswith(reverse("account_login"))


def test_wrong_methods_are_refused(world):
    client = signed_in("researcher")
    only_read = {name: key for name, key in READ.items() if name not in FORMS}
    for url in urls(only_read, world):
        assert client.post(url).status_code == 405, url
    for url in urls(WRITE, world):
        assert client.get(url).status_code == 405, url


def test_unknown_things_are_not_found(world):
    client = signed_in("researcher")
    # The last number is more than a database column holds.
    for number in (10**9, 10**30):
        nothing = {"judge": number, "calibration": number, "run": number, "slug": "nowhere"}
        assert_not_found(client, nothing)


def assert_not_found(client, nothing):
    for url in urls({name: key for name, key in READ.items() if key}, nothing):
        assert client.get(url).status_code == 404, url
    for url in urls(WRITE, nothing):
        assert client.post(url).status_code == 404, url


def test_forged_requests_without_a_token_are_refused(world):
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user(roles=["researcher"]))
    for url in urls(WRITE, world):
        assert client.post(url).status_code == 403, url

"""The start page: each role sees what waits for it, and nobody is lost."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from distressbench_site.accounts import services
from distressbench_site.accounts.models import User
from scoring.models import Run
from tests import factories
from tests.scoring import making

pytestmark = pytest.mark.django_db


def sign_in(client, *roles, name=""):
    email = f"someone-{factories.number()}@example.org"
    user = User.objects.create(email=email, name=name)
    services.set_roles(user=user, roles=roles, actor=None)
    client.force_login(user)
    return user


@pytest.mark.parametrize("roles", [["clinician"], ["senior clinician"]])
def test_who_only_labels_goes_straight_to_the_labelling(client, roles):
    sign_in(client, *roles)

    assert client.get(reverse("home"))["Location"] == reverse("labelling-home")


def test_who_has_no_role_is_told_whom_to_ask(client):
    sign_in(client, "admin", name="Ada Admin")
    closed = sign_in(client, "admin", name="Gone Admin")
    User.objects.filter(pk=closed.pk).update(is_active=False)
    sign_in(client)

    page = client.get(reverse("home")).content.decode()

    assert "Ada Admin" in page
    assert "Gone Admin" not in page


def test_without_any_admin_the_page_still_says_whom_to_ask(client):
    sign_in(client)

    assert "runs this installation" in client.get(reverse("home")).content.decode()


def test_a_researcher_of_an_empty_installation_sees_the_first_steps(client):
    sign_in(client, "researcher")

    page = client.get(reverse("home")).content.decode()

    assert "an admin imports them by command" in page
    assert "No round is open" in page
    assert ">there<" not in page
    assert reverse("person-list") not in page


def test_a_researcher_sees_rounds_runs_and_calibrations_that_wait(client):
    annotator = factories.make_annotator()
    made = factories.make_round(annotators=[annotator], name="Spring round", overlap=1)
    factories.label_item(made.items.get(), annotator)
    judge = making.make_judge(name="calm")
    collection = making.make_judged_collection(judge, conversations=2)
    calibration = making.make_calibration(judge, collection)
    run = making.make_run(judge, collection, status=Run.Status.PAUSED, last_error="no answer")
    sign_in(client, "researcher", "clinician")

    page = client.get(reverse("home")).content.decode()

    assert "Spring round" in page
    assert "1 of 1 done" in page
    assert "1 reply labelled in 1 round" in page
    assert reverse("round-agreement", args=[made.pk]) in page
    assert reverse("calibration-detail", args=[calibration.pk]) in page
    assert reverse("run-detail", args=[run.pk]) in page
    assert "no answer" in page
    assert "0 of 1 approved" in page
    assert reverse("labelling-home") in page


def test_a_decided_calibration_no_longer_waits(client):
    judge = making.make_judge()
    calibration = making.make_calibration(
        judge, making.make_judged_collection(judge, conversations=2)
    )
    calibration.decisions.create(decision="approve", reason="good enough")
    sign_in(client, "researcher")

    page = client.get(reverse("home")).content.decode()

    assert reverse("calibration-detail", args=[calibration.pk]) not in page
    assert "1 of 1 approved" in page


def test_an_admin_sees_people_collections_and_the_last_acts(client):
    admin = sign_in(client, "admin", name="Ada Admin")
    services.invite_person(email="new@example.org", roles=["clinician"], invited_by=admin)
    factories.make_user()

    page = client.get(reverse("home")).content.decode()

    assert "1 invited, 1 without a role" in page
    assert "import_corpus" in page
    assert "person invited: new@example.org" in page
    assert reverse("audit-list") in page


def test_the_number_of_queries_does_not_grow_with_rows(client):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            client.get(reverse("home"))
        return len(captured)

    sign_in(client, "researcher", "admin")
    judge = making.make_judge()

    def more():
        collection = making.make_judged_collection(judge, conversations=1)
        making.make_calibration(judge, collection)
        making.make_run(judge, collection)
        factories.make_round()

    more()
    before = queries()
    more()
    more()

    assert queries() == before

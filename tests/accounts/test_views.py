"""Pages about people: only admins see them, and what they change stays explained."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from distressbench_site.accounts import services
from distressbench_site.accounts.models import AuditEvent, Invitation, User
from distressbench_site.accounts.roles import roles_of

pytestmark = pytest.mark.django_db


def roles(user):
    return roles_of(User.objects.get(pk=user.pk))


def test_people_are_listed_with_roles_last_sign_in_and_open_invitations(as_admin, admin, clinician):
    services.invite_person(email="new@example.org", roles=["clinician"], invited_by=admin)

    page = as_admin.get(reverse("person-list")).content.decode()

    assert "clinician@example.org" in page
    assert "never" in page
    assert "new@example.org" in page


def test_the_number_of_queries_does_not_grow_with_people_and_events(as_admin, admin, make_person):
    def count(url):
        with CaptureQueriesContext(connection) as queries:
            as_admin.get(url)
        return len(queries)

    urls = [reverse("person-list"), reverse("audit-list")]
    before = [count(url) for url in urls]
    for number in range(10):
        make_person(f"p{number}@example.org", "clinician", "researcher")
        services.invite_person(email=f"i{number}@example.org", roles=["admin"], invited_by=admin)

    assert [count(url) for url in urls] == before


def test_an_invitation_shows_its_link_once_and_sends_it(as_admin):
    answer = as_admin.post(
        reverse("person-invite"), {"email": "New@Example.org", "roles": ["clinician"]}
    )

    [link] = re.findall(r"http://testserver/invitations/[^/]+/", answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    [message] = mail.outbox
    assert message.to == ["new@example.org"]
    assert link in message.body
    token = link.rstrip("/").rpartition("/")[2]
    invitation = Invitation.objects.get()
    assert invitation.email == "new@example.org"
    assert token not in str(Invitation.objects.values().get())
    assert token not in as_admin.get(reverse("person-list")).content.decode()
    assert AuditEvent.objects.get(action="person invited").detail == {"roles": ["clinician"]}


def test_an_invitation_whose_message_fails_says_so_and_still_shows_the_link(as_admin, monkeypatch):
    def refuse(**_):
        raise ConnectionRefusedError("no mail server")

    monkeypatch.setattr("distressbench_site.accounts.clients.send_mail", refuse)

    answer = as_admin.post(
        reverse("person-invite"), {"email": "new@example.org", "roles": ["clinician"]}
    )

    assert answer.status_code == 200
    assert "could not be sent" in answer.content.decode()
    assert "/invitations/" in answer.content.decode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"email": "new@example.org"}, "Choose at least one role."),
        ({"email": "not an address", "roles": ["clinician"]}, "valid email"),
        ({"email": "ADMIN@example.org", "roles": ["clinician"]}, "a person with this e-mail"),
        ({"email": "new@example.org", "roles": ["emperor"]}, "valid choice"),
    ],
)
def test_an_invitation_that_cannot_be_meant_is_refused(as_admin, data, words):
    answer = as_admin.post(reverse("person-invite"), data)

    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Invitation.objects.exists()
    assert not mail.outbox


def test_a_second_invitation_replaces_the_first(admin):
    _, old = services.invite_person(email="a@example.org", roles=["clinician"], invited_by=admin)
    _, new = services.invite_person(email="A@example.org", roles=["researcher"], invited_by=admin)

    assert services.find_invitation(old) is None
    assert services.find_invitation(new) is not None


def test_a_withdrawn_invitation_no_longer_works(as_admin, admin):
    invitation, token = services.invite_person(
        email="a@example.org", roles=["clinician"], invited_by=admin
    )
    url = reverse("invitation-withdraw", args=[invitation.pk])

    assert as_admin.post(url).status_code == 302
    assert services.find_invitation(token) is None
    assert AuditEvent.objects.filter(action="invitation withdrawn").count() == 1
    assert "not open any more" in as_admin.post(url, follow=True).content.decode()
    assert AuditEvent.objects.filter(action="invitation withdrawn").count() == 1


def test_roles_are_set_and_logged(as_admin, admin, clinician):
    url = reverse("person-roles", args=[clinician.pk])
    assert re.search(r'value="clinician"[^>]*checked', as_admin.get(url).content.decode())

    assert as_admin.post(url, {"roles": ["researcher", "admin"]}).status_code == 302

    assert roles(clinician) == {"researcher", "admin"}
    assert User.objects.get(pk=clinician.pk).is_staff
    event = AuditEvent.objects.get(action="roles set", actor=admin)
    assert event.detail == {"roles": ["admin", "researcher"]}

    as_admin.post(url, {})
    assert roles(clinician) == frozenset()
    assert not User.objects.get(pk=clinician.pk).is_staff


def test_an_admin_cannot_lock_everybody_out(as_admin, admin):
    answer = as_admin.post(reverse("person-roles", args=[admin.pk]), {"roles": ["researcher"]})
    assert answer.status_code == 422
    assert "Ask another admin" in answer.content.decode()

    answer = as_admin.post(reverse("person-deactivate", args=[admin.pk]))
    assert answer.status_code == 422
    assert "Ask another admin" in answer.content.decode()
    assert roles(admin) == {"admin"}


def test_a_closed_account_is_out_at_once_and_can_be_opened_again(as_admin, clinician):
    theirs = Client()
    theirs.force_login(clinician)
    assert theirs.get(reverse("account_change_password")).status_code == 200

    url = reverse("person-deactivate", args=[clinician.pk])
    assert as_admin.get(url).status_code == 200
    assert User.objects.get(pk=clinician.pk).is_active
    assert as_admin.post(url).status_code == 302

    assert theirs.get(reverse("account_change_password")).status_code == 302
    assert as_admin.post(url).status_code == 422

    as_admin.post(reverse("person-reactivate", args=[clinician.pk]))
    assert User.objects.get(pk=clinician.pk).is_active
    actions = AuditEvent.objects.filter(target=clinician.email).values_list("action", flat=True)
    assert {"person deactivated", "person reactivated"} <= set(actions)


def test_a_closed_account_keeps_its_roles(as_admin, clinician):
    as_admin.post(reverse("person-deactivate", args=[clinician.pk]))

    page = as_admin.get(reverse("person-roles", args=[clinician.pk])).content.decode()

    assert re.search(r'value="clinician"[^>]*checked', page)


def test_the_audit_log_is_filtered_and_paged(as_admin, admin):
    for number in range(60):
        services.record_audit(actor=admin, action="round opened", target=f"round {number}")
    services.record_audit(actor=None, action="corpus imported", target="annex", detail={"n": 3})

    page = as_admin.get(reverse("audit-list")).content.decode()
    assert "corpus imported" in page
    assert "n: 3" in page
    assert "the program" in page
    assert "round 1<" not in page

    assert "round 1<" in as_admin.get(reverse("audit-list"), {"page": 2}).content.decode()
    only = as_admin.get(reverse("audit-list"), {"action": "corpus imported"}).content.decode()
    assert "annex" in only
    assert "round 59" not in only
    assert "round 59" in as_admin.get(reverse("audit-list"), {"words": "Ada"}).content.decode()
    nothing = as_admin.get(reverse("audit-list"), {"words": "zebra"}).content.decode()
    assert "No line of the log matches" in nothing


def test_the_first_person_of_an_installation_can_let_others_in(client):
    client.force_login(User.objects.create_superuser("first@example.org", "x"))

    assert client.get(reverse("person-invite")).status_code == 200


class TestInvitationLink:
    @pytest.fixture
    def invited(self, admin):
        return services.invite_person(
            email="new@example.org", roles=["clinician", "researcher"], invited_by=admin
        )

    def url(self, token):
        return reverse("invitation-accept", args=[token])

    def accept(self, client, token):
        assert client.post(self.url(token)).status_code == 302
        return {
            "name": "New Person",
            "password1": "three calm herons wade",
            "password2": "three calm herons wade",
        }

    def test_looking_at_an_invitation_changes_nothing(self, client, invited):
        answer = client.get(self.url(invited[1]))

        assert "new@example.org" in answer.content.decode()
        assert services.INVITATION_KEY not in client.session
        assert "by invitation" in client.get(reverse("account_signup")).content.decode()

    def test_an_invited_person_sets_up_an_account_with_the_roles(self, client, invited):
        data = self.accept(client, invited[1])
        form = client.get(reverse("account_signup")).content.decode()
        assert re.search(r'value="new@example.org"[^>]*disabled', form)

        answer = client.post(reverse("account_signup"), data)

        assert answer.status_code == 302
        assert answer["Location"] == reverse("home")
        user = User.objects.get(email="new@example.org")
        assert user.name == "New Person"
        assert roles(user) == {"clinician", "researcher"}
        assert client.session["_auth_user_id"] == str(user.pk)
        assert Invitation.objects.get().accepted_by == user
        assert AuditEvent.objects.get(action="invitation accepted").actor == user

    def test_the_address_of_an_invitation_cannot_be_changed(self, client, invited):
        data = self.accept(client, invited[1])

        client.post(reverse("account_signup"), {**data, "email": "other@example.org"})

        assert User.objects.filter(email="new@example.org").exists()
        assert not User.objects.filter(email="other@example.org").exists()

    def test_a_used_invitation_is_closed(self, client, invited):
        client.post(reverse("account_signup"), self.accept(client, invited[1]))

        for someone in (Client(), client):
            answer = someone.get(self.url(invited[1]))
            assert answer.status_code == 404
            assert "is not open" in answer.content.decode()

    def test_the_quicker_of_two_browsers_gets_the_account(self, client, invited):
        slow = Client()
        slow_data = self.accept(slow, invited[1])
        client.post(reverse("account_signup"), self.accept(client, invited[1]))

        answer = slow.post(reverse("account_signup"), slow_data, follow=True)

        assert "by invitation" in answer.content.decode()
        assert User.objects.filter(email="new@example.org").count() == 1
        assert "_auth_user_id" not in slow.session

    def test_an_invitation_that_is_used_in_the_same_moment_is_closed(
        self, client, invited, monkeypatch
    ):
        data = self.accept(client, invited[1])
        accept = services.accept_invitation

        def late(*, invitation, user):
            Invitation.objects.update(accepted_at=timezone.now())
            return accept(invitation=invitation, user=user)

        monkeypatch.setattr(services, "accept_invitation", late)

        answer = client.post(reverse("account_signup"), data, follow=True)

        assert "by invitation" in answer.content.decode()
        assert not User.objects.filter(email="new@example.org").exists()

    def test_an_expired_invitation_is_closed(self, client, invited):
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

        assert client.get(self.url(invited[1])).status_code == 404
        assert client.post(self.url(invited[1])).status_code == 404

    def test_an_invitation_that_expires_before_sign_up_is_closed(self, client, invited):
        data = self.accept(client, invited[1])
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

        answer = client.post(reverse("account_signup"), data)

        assert "by invitation" in answer.content.decode()
        assert not User.objects.filter(email="new@example.org").exists()

    def test_somebody_signed_in_is_asked_to_sign_out_first(self, as_admin, invited):
        for answer in (as_admin.get(self.url(invited[1])), as_admin.post(self.url(invited[1]))):
            assert "sign out first" in answer.content.decode()
        assert services.INVITATION_KEY not in as_admin.session

    def test_a_made_up_link_is_closed(self, client):
        assert client.get(self.url("made-up")).status_code == 404

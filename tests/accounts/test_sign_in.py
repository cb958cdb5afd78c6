"""The door: sign-in by e-mail, one way out, and an admin site behind the same door."""

import re

import pytest
from allauth.mfa.totp.internal import auth as totp
from django.core import mail
from django.core.cache import cache
from django.urls import reverse

from distressbench_site.accounts.models import User
from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db

# Only our own frame has these.
FRAME = ('class="bar"', 'id="support"', "css/tokens")


def sign_in(client, email, password=PASSWORD, **more):
    return client.post(reverse("account_login"), {"login": email, "password": password, **more})


def assert_ours(answer):
    page = answer.content.decode()
    for part in FRAME:
        assert part in page
    assert "style=" not in page
    # Data for a script is no script: the policy of the pages lets it stand.
    assert not re.search(r"<script(?![^>]*(\bsrc=|application/json))", page)
    assert "onclick" not in page


def test_people_sign_in_with_their_address_in_any_case(client, clinician):
    answer = sign_in(client, "Clinician@Example.org")

    assert answer.status_code == 302
    assert answer["Location"] == reverse("home")
    assert client.session["_auth_user_id"] == str(clinician.pk)


def test_the_program_stores_passwords_that_take_long_to_guess(make_program, clinician):
    hashing = "from django.contrib.auth.hashers import make_password; print(make_password('calm'))"

    stored = make_program().manage("shell", "--command", hashing).stdout

    algorithm, rounds, *_ = stored.strip().splitlines()[-1].split("$")
    assert algorithm == "pbkdf2_sha256"
    assert int(rounds) >= 600_000
    # The tests of this process alone do without, for speed.
    assert clinician.password.startswith("md5$")


def test_sign_in_goes_on_to_where_somebody_wanted_to_be_and_never_elsewhere(client, clinician):
    url = reverse("account_change_password")
    asked = client.get(url)
    assert asked["Location"] == f"{reverse('account_login')}?next={url}"
    assert url in client.get(asked["Location"]).content.decode()
    assert sign_in(client, clinician.email, next=url)["Location"] == url

    client.logout()
    answer = sign_in(client, clinician.email, next="https://elsewhere.example/")
    assert answer["Location"] == reverse("home")


@pytest.mark.parametrize("email", ["clinician@example.org", "nobody@example.org"])
def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(client, clinician, email):
    answer = sign_in(client, email, "wrong")

    assert "_auth_user_id" not in client.session
    page = answer.content.decode()
    assert "not correct" in page
    assert_ours(answer)


def test_many_failed_sign_ins_are_slowed_down(client, clinician):
    for _ in range(6):
        answer = sign_in(client, clinician.email, "wrong")

    assert "Too many" in answer.content.decode()
    assert "_auth_user_id" not in client.session
    cache.clear()
    assert sign_in(client, clinician.email).status_code == 302


def test_a_team_behind_one_address_can_sign_in_within_one_minute(client, clinician):
    for _ in range(40):
        assert sign_in(client, clinician.email).status_code == 302
        client.logout()


def test_a_closed_account_cannot_sign_in(client, clinician):
    User.objects.update(is_active=False)

    answer = sign_in(client, clinician.email)

    assert "_auth_user_id" not in client.session
    assert answer.status_code in {200, 302}


def test_looking_at_sign_out_does_not_sign_out(client, clinician):
    client.force_login(clinician)

    assert client.get(reverse("account_logout")).status_code == 200
    assert "_auth_user_id" in client.session
    answer = client.post(reverse("account_logout"))
    assert answer["Location"] == reverse("account_login")
    assert "_auth_user_id" not in client.session


def test_signing_up_is_closed_without_an_invitation(client):
    data = {
        "email": "new@example.org",
        "name": "New",
        "password1": "three calm herons wade",
        "password2": "three calm herons wade",
    }

    for answer in (
        client.get(reverse("account_signup")),
        client.post(reverse("account_signup"), data),
    ):
        assert "by invitation" in answer.content.decode()
    assert not User.objects.exists()


def test_a_forgotten_password_is_reset_by_mail(client, clinician):
    answer = client.post(reverse("account_reset_password"), {"email": clinician.email})
    assert answer["Location"] == reverse("account_reset_password_done")
    [message] = mail.outbox
    assert message.to == [clinician.email]
    [path] = re.findall(r"http://testserver(/\S+)", message.body)

    form = client.get(path, follow=True)
    assert_ours(form)
    action = form.request["PATH_INFO"]
    done = client.post(action, {"password1": "new herons wade", "password2": "new herons wade"})

    assert done["Location"] == reverse("account_reset_password_from_key_done")
    assert sign_in(client, clinician.email, "new herons wade").status_code == 302
    client.logout()
    assert "no longer works" in client.get(path, follow=True).content.decode()


def test_asking_for_an_unknown_address_looks_the_same(client):
    answer = client.post(reverse("account_reset_password"), {"email": "nobody@example.org"})

    assert answer["Location"] == reverse("account_reset_password_done")


def test_the_password_is_changed_by_who_knows_the_old_one(client, clinician):
    client.force_login(clinician)
    new = {"password1": "new herons wade", "password2": "new herons wade"}

    client.post(reverse("account_change_password"), {"oldpassword": "wrong", **new})
    assert User.objects.get().check_password(PASSWORD)
    client.post(reverse("account_change_password"), {"oldpassword": PASSWORD, **new})
    assert User.objects.get().check_password("new herons wade")


@pytest.mark.parametrize(
    "name",
    ["account_login", "account_reset_password", "account_reset_password_done", "account_inactive"],
)
def test_the_pages_before_the_door_have_our_frame(client, name):
    assert_ours(client.get(reverse(name)))


@pytest.mark.parametrize(
    "name",
    [
        "account_logout",
        "account_change_password",
        "account_email",
        "mfa_index",
        "account_reauthenticate",
    ],
)
def test_the_pages_of_ones_own_account_have_our_frame(client, clinician, name):
    client.force_login(clinician)

    assert_ours(client.get(reverse(name), follow=True))


def test_a_second_step_can_be_added_and_is_then_asked_for(client, clinician):
    sign_in(client, clinician.email)
    asked = client.get(reverse("mfa_activate_totp"), follow=True)
    assert asked.request["PATH_INFO"] == reverse("account_reauthenticate")
    assert_ours(asked)
    client.post(asked.request["PATH_INFO"], {"password": PASSWORD})
    assert_ours(client.get(reverse("mfa_activate_totp")))
    secret = client.session["mfa.totp.secret"]

    def code(step=0):
        return totp.format_hotp_value(
            totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time()) + step)
        )

    answer = client.post(reverse("mfa_activate_totp"), {"code": code()})
    assert answer.status_code == 302
    for name in ("mfa_index", "mfa_view_recovery_codes", "mfa_deactivate_totp"):
        assert_ours(client.get(reverse(name), follow=True))
    client.post(reverse("account_logout"))

    answer = sign_in(client, clinician.email)

    assert answer["Location"].startswith(reverse("mfa_authenticate"))
    assert "_auth_user_id" not in client.session
    assert_ours(client.get(reverse("mfa_authenticate")))
    cache.clear()
    client.post(reverse("mfa_authenticate"), {"code": code()})
    assert client.session["_auth_user_id"] == str(clinician.pk)


def test_the_admin_site_is_behind_the_same_door(client, clinician, admin):
    index = reverse("admin:index")
    answer = client.get(index, follow=True)
    assert answer.request["PATH_INFO"] == reverse("account_login")

    client.force_login(clinician)
    assert client.get(index, follow=True).status_code == 403

    client.force_login(admin)
    page = client.get(index).content.decode()
    assert "Audit events" in page
    for model in ("user", "invitation", "auditevent"):
        assert client.get(reverse(f"admin:accounts_{model}_changelist")).status_code == 200
        assert client.get(reverse(f"admin:accounts_{model}_add")).status_code == 403


def test_the_admin_site_deletes_nobody_and_shows_no_secret(client, admin, clinician):
    client.force_login(admin)
    assert client.get(reverse("admin:accounts_user_delete", args=[clinician.pk])).status_code == 403
    page = client.get(reverse("admin:accounts_user_change", args=[clinician.pk])).content.decode()
    assert "pbkdf2" not in page
    assert 'name="_save"' not in page

"""A person is invited, comes in, and is looked after, in a real browser on a real server."""

import re

import pytest

from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.browser

ADMIN = (
    "from distressbench_site.accounts import services; "
    "from distressbench_site.accounts.models import User; "
    f"user = User.objects.create_user('ada@example.org', '{PASSWORD}', name='Ada Admin'); "
    "services.set_roles(user=user, roles=['admin'], actor=None)"
)


def sign_in(page, program, email, password=PASSWORD):
    page.goto(f"{program.url}/account/login/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_from_invitation_to_closed_account(live_program, new_page, axe, scripts):
    live_program.manage("shell", "--command", ADMIN)

    def look(page):
        if scripts:
            axe(page)
        width = page.evaluate("document.documentElement.scrollWidth") if scripts else 0
        assert width <= page.viewport_size["width"]

    admin = new_page(java_script_enabled=scripts, viewport={"width": 1200, "height": 800})
    sign_in(admin, live_program, "ada@example.org")
    look(admin)
    admin.get_by_role("link", name="People", exact=True).first.click()
    look(admin)
    admin.get_by_role("link", name="Invite a person").click()
    look(admin)
    admin.get_by_label("E-mail address").fill("new@example.org")
    admin.get_by_role("button", name="Send the invitation").click()
    assert "Choose at least one role" in admin.content()
    look(admin)
    admin.get_by_label("Clinician: labels replies").check()
    admin.get_by_role("button", name="Send the invitation").click()
    look(admin)
    link = re.search(r"http://[^<\s]+/invitations/[^<\s]+", admin.content())[0]
    assert link in live_program.log

    guest = new_page(java_script_enabled=scripts, viewport={"width": 320, "height": 700})
    guest.goto(link)
    look(guest)
    guest.get_by_role("button", name="Set up my account").click()
    look(guest)
    assert guest.get_by_label("E-mail address").input_value() == "new@example.org"
    guest.get_by_label("Your name").fill("New Clinician")
    guest.get_by_label("Password", exact=True).fill("three calm herons wade")
    guest.get_by_label("Password (again)").fill("three calm herons wade")
    guest.get_by_role("button", name="Set up the account").click()
    assert guest.url == f"{live_program.url}/label/"
    guest.goto(f"{live_program.url}/people/")
    assert "not open to you" in guest.content()
    look(guest)
    guest.goto(link)
    assert "is not open" in guest.content()
    look(guest)

    admin.goto(f"{live_program.url}/people/")
    admin.get_by_role("link", name="Roles of New Clinician").click()
    look(admin)
    admin.get_by_role("link", name="Cancel").click()
    admin.get_by_role("link", name="Close the account of New Clinician").click()
    look(admin)
    admin.get_by_role("button", name="Close the account").click()
    assert "is closed" in admin.content()
    admin.get_by_role("link", name="Audit log").first.click()
    assert "person deactivated" in admin.content()
    look(admin)

    guest.goto(f"{live_program.url}/label/")
    assert "/account/login/" in guest.url
    sign_in(guest, live_program, "new@example.org", "three calm herons wade")
    assert "/label/" not in guest.url
    look(guest)


def test_a_second_step_is_set_up_under_the_policy_of_the_pages(live_program, page, axe):
    live_program.manage("shell", "--command", ADMIN)
    sign_in(page, live_program, "ada@example.org")
    for path in ("account/password/change/", "account/email/", "account/2fa/"):
        page.goto(f"{live_program.url}/{path}")
        axe(page)
    page.goto(f"{live_program.url}/account/2fa/totp/activate/")
    axe(page)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    assert page.url.endswith("/totp/activate/")
    axe(page)
    code = page.locator("img[src^='data:image/svg']")
    assert code.evaluate("image => image.complete && image.naturalWidth > 0")

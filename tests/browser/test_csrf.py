"""A page that is older than the last sign-in can still send what it holds."""

import re

import pytest

from tests.browsing import fill_sign_in
from tests.factories import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

SEED = """
from tests.factories import *
make_user(roles=["researcher", "admin"], email="rita@example.org", name="Rita Reed")
person = make_user(roles=["clinician"], email="carla@example.org", name="Carla Cole")
collection = make_collection(slug="browser")
replies = [make_reply(make_conversation(collection, criteria=2), make_respondent())]
print("ROUND", make_round(replies, [make_annotator(person)], overlap=1).pk)
"""
# An htmx form that no script of the labelling page looks after.
PLAIN_HTMX_FORM = """
([url, token]) => {
  const form = document.createElement("form");
  for (const [name, value] of [["csrfmiddlewaretoken", token], ["value", "met"]]) {
    const field = document.createElement("input");
    Object.assign(field, { name, value });
    form.append(field);
  }
  form.setAttribute("hx-post", url);
  document.body.append(form);
  window.htmx.process(form);
  form.requestSubmit();
}
"""


@pytest.fixture
def program(live_program):
    live_program.manage("shell", "-c", SEED)
    return live_program


def sign_in(page, program, email="carla@example.org"):
    page.goto(f"{program.url}/account/login/")
    fill_sign_in(page, email, PASSWORD)


def sign_in_anew_in_another_tab(page, program, email="carla@example.org"):
    """Rotate the token of the page's cookies, and return what it was."""

    def token():
        cookies = page.context.cookies(program.url)
        return next(c["value"] for c in cookies if c["name"].endswith("csrftoken"))

    before = token()
    page.context.clear_cookies(name="sessionid")
    tab = page.context.new_page()
    sign_in(tab, program, email)
    tab.close()
    assert token() != before
    return before


def start_labelling(page, program):
    sign_in(page, program)
    page.goto(f"{program.url}/label/")
    page.get_by_role("button", name="next reply").click()
    page.wait_for_selector("[data-labelling]")


def test_an_answer_is_kept_after_a_new_sign_in(page, program):
    start_labelling(page, program)
    sign_in_anew_in_another_tab(page, program)

    with page.expect_response(re.compile("/criteria/")) as answer:
        page.locator("form[data-criterion] label.met").first.click()

    assert answer.value.status == 200
    page.wait_for_selector(".saved[data-state=saved]")


def test_any_htmx_form_brings_the_token_of_the_moment(page, program):
    start_labelling(page, program)
    url = page.locator("form[data-criterion]").first.get_attribute("hx-post")
    stale = page.locator("input[name=csrfmiddlewaretoken]").first.input_value()
    page.goto(f"{program.url}/label/")
    sign_in_anew_in_another_tab(page, program)

    with page.expect_response(re.compile("/criteria/")) as answer:
        page.evaluate(PLAIN_HTMX_FORM, [url, stale])

    assert answer.value.status != 403
    sent = answer.value.request
    assert "csrfmiddlewaretoken" not in sent.post_data
    assert sent.headers["x-csrftoken"] != stale


def test_any_other_form_brings_the_token_of_the_moment(page, program):
    sign_in(page, program, "rita@example.org")
    for path in ("/rounds/new/", "/rounds/1/", "/people/invite/"):
        page.goto(program.url + path)
        sign_in_anew_in_another_tab(page, program, "rita@example.org")
        form = page.locator("main form[method=post i]").first

        with page.expect_navigation() as answer:
            form.evaluate("form => { form.noValidate = true; form.requestSubmit(); }")

        # The page that it leads to, or the form again with what is missing in it.
        assert answer.value.status in {200, 422}, path


def test_a_sign_in_page_from_before_the_last_sign_in_still_signs_in(page, program):
    page.goto(f"{program.url}/account/login/")
    tab = page.context.new_page()
    sign_in(tab, program)
    tab.close()
    page.context.clear_cookies(name="sessionid")
    fill_sign_in(page, "carla@example.org", PASSWORD)

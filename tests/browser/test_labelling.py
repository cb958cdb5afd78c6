"""A clinician at work: with the mouse, with the keyboard, without JavaScript, and after a crash."""

import json
import re

import pytest

from tests.browsing import fill_sign_in
from tests.factories import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

SEED = """
from tests.factories import *
clinician = make_user(roles=["clinician"], email="clinician@example.org", name="Alice Archer")
colleague = make_user(roles=["clinician"], email="colleague@example.org", name="Bob Baker")
researcher = make_user(roles=["researcher"], email="researcher@example.org", name="Rita Reed")
annotators = [make_annotator(clinician), make_annotator(colleague)]
collection = make_collection(slug="browser")
long = [
    {"role": role, "text": f"Turn {n}. " + "Something was said here, at some length. " * 12}
    for n in range(7) for role in ("user", "assistant")
]
conversations = [
    make_conversation(
        collection,
        turns=[{"role": "user", "text": "First message.\\n\\nIts second paragraph."},
               {"role": "user", "text": "Second message."}],
        criteria=["Names what is happening.", "Gives a contact that works.", "Does not judge."],
    ),
    make_conversation(
        collection,
        turns=[*long, {"role": "user", "text": "And now?"}],
        criteria=["One long criterion. " * 150 + "\\n\\nWith a second paragraph.", "A short one."],
    ),
    *(make_conversation(collection, criteria=2) for _ in range(4)),
]
respondent = make_respondent()
replies = [make_reply(c, respondent) for c in conversations]
made = make_round(replies, annotators, overlap=2, name="Browser round", guidelines="## Read *all*")
print("ROUND", made.pk)
"""


@pytest.fixture
def program(live_program):
    live_program.manage("shell", "-c", SEED)
    return live_program


def sign_in(page, program, email="clinician@example.org"):
    page.goto(f"{program.url}/account/login/")
    fill_sign_in(page, email, PASSWORD)


def take_next(page, program):
    page.goto(f"{program.url}/label/")
    page.get_by_role("button", name=re.compile("next reply|Go on")).click()
    page.wait_for_selector("[data-labelling]")


def labels_of(program):
    """Return what the database holds: criterion -> answer."""
    code = (
        "import json\nfrom annotation.models import Label\n"
        "print('LABELS', json.dumps({l.criterion_id: l.value for l in Label.objects.all()}))"
    )
    found = re.search(r"LABELS (.*)", program.manage("shell", "-c", code).stdout)
    return {int(key): value for key, value in json.loads(found[1]).items()}


def criterion_ids(page):
    forms = page.locator("form[data-criterion]").all()
    return [int(form.get_attribute("id").split("-")[1]) for form in forms]


def wait_saved(page, criterion):
    page.wait_for_selector(f"#saved-{criterion}[data-state=saved]")


def test_a_reply_is_labelled_with_the_mouse(page, program, axe):
    sign_in(page, program)
    page.goto(f"{program.url}/label/")
    axe(page)
    take_next(page, program)
    axe(page)
    first_url = page.url
    asked = criterion_ids(page)
    assert page.locator("input[type=radio]:checked").count() == 0
    for criterion in asked:
        page.click(f"#criterion-{criterion} label.not")
        wait_saved(page, criterion)
    assert page.locator("#state strong").inner_text() == f"{len(asked)} of {len(asked)}"
    assert labels_of(program) == dict.fromkeys(asked, "not_met")
    page.get_by_role("button", name="Submit and next").click()
    page.wait_for_url(lambda url: url != first_url)
    assert page.locator("[data-labelling]").count() == 1
    page.goto(first_url)
    assert page.get_by_text("You submitted these answers").is_visible()
    axe(page)


def test_a_reply_is_labelled_with_the_keyboard_alone(page, program):
    sign_in(page, program)
    take_next(page, program)
    first_url = page.url
    asked = criterion_ids(page)
    page.locator("#criteria").focus()
    for criterion in asked:
        for _ in range(10):
            page.keyboard.press("Tab")
            inside = page.evaluate(
                "id => document.activeElement.type === 'radio'"
                " && document.activeElement.form.id === id",
                f"criterion-{criterion}",
            )
            if inside:
                break
        assert inside
        page.keyboard.press("Space")
        wait_saved(page, criterion)
        # The save leaves the focus where it was.
        assert page.evaluate("document.activeElement.value") == "met"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip() == "Submit and next":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != first_url)
    assert labels_of(program) == dict.fromkeys(asked, "met")


def test_a_reply_is_labelled_without_javascript(new_page, program):
    page = new_page(java_script_enabled=False)
    sign_in(page, program)
    take_next(page, program)
    first_url = page.url
    page.get_by_role("button", name="Submit and next").click()
    assert page.get_by_text("Not submitted yet").is_visible()
    page.goto(first_url)
    asked = criterion_ids(page)
    for criterion in asked:
        form = page.locator(f"#criterion-{criterion}")
        form.locator("label.tell").click()
        form.locator("select").select_option("not_applicable")
        form.get_by_role("button", name="Save").click()
        page.wait_for_url(re.compile(f"#criterion-{criterion}$"))
        assert page.locator(f"#saved-{criterion}[data-state=saved]").count() == 1
    page.get_by_role("button", name="Submit and next").click()
    assert labels_of(program) == dict.fromkeys(asked, "cannot_tell")
    assert page.url != first_url


def test_cannot_tell_asks_for_a_reason_before_submission(page, program, axe):
    sign_in(page, program)
    take_next(page, program)
    asked = criterion_ids(page)
    for criterion in asked:
        page.click(f"#criterion-{criterion} label.tell")
    page.wait_for_function("document.querySelectorAll('.saved[data-state=open]').length > 0")
    page.get_by_role("button", name="Submit and next").click()
    page.wait_for_selector("#open-criteria")
    axe(page)
    assert page.locator("#open-criteria li").count() == len(asked)
    page.locator("#open-criteria a").first.click()
    for criterion in asked:
        page.select_option(f"#reason-{criterion}", "criterion_unclear")
        wait_saved(page, criterion)
    page.get_by_role("button", name="Submit and next").click()
    page.wait_for_selector("[data-labelling]")
    assert page.locator("#open-criteria").count() == 0


def test_a_comment_is_saved_when_one_leaves_it(page, program):
    sign_in(page, program)
    take_next(page, program)
    criterion = criterion_ids(page)[0]
    page.click(f"#criterion-{criterion} label.met")
    wait_saved(page, criterion)
    page.click(f"#criterion-{criterion} summary")
    page.fill(f"#comment-{criterion}", "It says so in the second part.")
    with page.expect_response(re.compile("/criteria/")):
        page.locator("#criteria").focus()
    wait_saved(page, criterion)
    page.reload()
    assert page.input_value(f"#comment-{criterion}") == "It says so in the second part."


def test_what_was_shown_as_saved_survives_a_kill(page, program):
    sign_in(page, program)
    take_next(page, program)
    asked = criterion_ids(page)
    page.click(f"#criterion-{asked[0]} label.met")
    wait_saved(page, asked[0])
    program.kill()
    page.click(f"#criterion-{asked[1]} label.not")
    page.wait_for_selector(f"#saved-{asked[1]}[data-state=failed]")
    assert page.locator("#unsent").inner_text() == "1 not yet sent"
    assert labels_of(program) == {asked[0]: "met"}
    program.start()
    # Nobody touches the page: it sends by itself what it could not send.
    wait_saved(page, asked[1])
    assert page.locator("#unsent").inner_text() == ""
    assert labels_of(program) == {asked[0]: "met", asked[1]: "not_met"}


@pytest.mark.parametrize("cookies", ["session", "all"])
def test_a_lapsed_session_keeps_the_answer_until_one_signs_in_again(page, program, cookies):
    sign_in(page, program)
    take_next(page, program)
    criterion = criterion_ids(page)[0]
    page.context.clear_cookies(**({"name": "sessionid"} if cookies == "session" else {}))
    page.click(f"#criterion-{criterion} label.met")
    page.wait_for_selector("#signed-out:not([hidden])")
    assert page.locator(f"#saved-{criterion}").get_attribute("data-state") == "failed"
    assert labels_of(program) == {}
    with page.context.expect_page() as opened:
        page.click("#signed-out a")
    tab = opened.value
    fill_sign_in(tab, "clinician@example.org", PASSWORD)
    tab.close()
    wait_saved(page, criterion)
    assert page.locator("#signed-out").is_hidden()
    assert labels_of(program) == {criterion: "met"}


def test_a_submission_waits_for_answers_on_their_way(page, program):
    sign_in(page, program)
    take_next(page, program)
    first_url = page.url
    asked = criterion_ids(page)
    for criterion in asked[:-1]:
        page.click(f"#criterion-{criterion} label.met")
        wait_saved(page, criterion)
    refused = []

    def refuse_once(route):
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    page.route(re.compile(f"/criteria/{asked[-1]}/"), refuse_once)
    page.click(f"#criterion-{asked[-1]} label.met")
    page.get_by_role("button", name="Submit and next").click()
    page.wait_for_url(lambda url: url != first_url)
    assert refused
    assert labels_of(program) == dict.fromkeys(asked, "met")


def test_quick_changes_end_with_the_last_answer(page, program):
    sign_in(page, program)
    take_next(page, program)
    criterion = criterion_ids(page)[0]
    for answer in ("met", "not", "tell", "met", "not"):
        page.click(f"#criterion-{criterion} label.{answer}")
    page.wait_for_load_state("networkidle")
    wait_saved(page, criterion)
    assert labels_of(program)[criterion] == "not_met"


@pytest.mark.parametrize("width", [320, 390])
def test_no_page_scrolls_sideways(new_page, program, width):
    page = new_page(viewport={"width": width, "height": 700})
    sign_in(page, program)
    for _ in range(6):
        take_next(page, program)
        for view in ("Criteria", "Reply"):
            page.get_by_role("link", name=view, exact=True).click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("button", name="Skip for now").click()
        page.wait_for_load_state()
    researcher = new_page(viewport={"width": width, "height": 700})
    sign_in(researcher, program, "researcher@example.org")
    for path in ("/rounds/", "/rounds/new/", "/rounds/1/", "/rounds/1/agreement/", "/method/"):
        researcher.goto(program.url + path)
        assert researcher.evaluate("document.documentElement.scrollWidth") <= width, path


def test_pages_of_rounds_are_accessible(page, program, axe):
    sign_in(page, program, "researcher@example.org")
    for path in ("/rounds/", "/rounds/new/", "/rounds/1/", "/rounds/1/agreement/", "/method/"):
        page.goto(program.url + path)
        axe(page)


def test_a_researcher_sets_up_and_opens_a_round(page, program):
    sign_in(page, program, "researcher@example.org")
    page.goto(f"{program.url}/rounds/new/")
    page.fill("#id_name", "Second round")
    page.locator("#id_respondents input").first.check()
    page.locator("#id_people input").first.check()
    page.fill("#id_first", "2")
    page.get_by_role("button", name="Make the round").click()
    page.get_by_role("button", name="Open the round").click()
    assert page.locator(".head .tag.accent").inner_text() == "open"

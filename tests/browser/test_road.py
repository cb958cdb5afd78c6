"""The main job from end to end, in a real browser on a real server: corpus file to leaderboard."""

import json
import re
import zipfile

import pytest

from tests import healthbench
from tests.browsing import fill_sign_in
from tests.factories import PASSWORD
from tests.program import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.no_database]

PEOPLE = """
from tests.factories import make_user
make_user(roles=["clinician"], email="one@example.org", name="Alice Archer")
make_user(roles=["clinician"], email="two@example.org", name="Bob Baker")
make_user(roles=["researcher"], email="researcher@example.org", name="Rita Reed")
"""
REASON = "The first calibration of this collection: it is here to compare with."


class Walk:
    """A walk through the pages of one collection; every kind of page is looked at with axe."""

    def __init__(self, program, new_page, axe, collection, name, respondents, replies):
        self.program, self.new_page, self.axe = program, new_page, axe
        self.collection, self.respondents, self.replies = collection, respondents, replies
        self.name = name
        self.seen = set()

    def look(self, page):
        """Check a page, once for each kind."""
        kind = re.sub(r"\d+", "N", page.url.split("?")[0])
        if (kind, page.title()) not in self.seen:
            self.seen.add((kind, page.title()))
            self.axe(page)

    def sign_in(self, email):
        """Return a page of somebody who signed in, at the start page."""
        page = self.new_page()
        page.goto(f"{self.program.url}/")
        self.look(page)
        fill_sign_in(page, email, PASSWORD)
        self.look(page)
        return page

    def go(self, page, *links):
        """Follow links by their words."""
        for link in links:
            page.get_by_role("link", name=link).first.click()
            page.wait_for_load_state()
            self.look(page)

    def press(self, page, button):
        """Press a button by its words."""
        page.get_by_role("button", name=button).first.click()
        page.wait_for_load_state()
        self.look(page)

    def open_round(self, researcher):
        """Set a round up, and open it."""
        researcher.goto(f"{self.program.url}/rounds/new/?collection={self.collection}")
        self.look(researcher)
        researcher.get_by_label("Name").fill("Walked round")
        for name in self.respondents:
            researcher.get_by_label(name, exact=True).check()
        researcher.get_by_label("At most this many replies").fill(str(self.replies))
        for name in ("Alice Archer", "Bob Baker"):
            researcher.get_by_label(name).check()
        researcher.get_by_label("Guidelines").fill("Read the whole reply before you answer.")
        self.press(researcher, "Make the round")
        self.press(researcher, "Open the round")
        self.round_path = researcher.url.removeprefix(f"{self.program.url}/")

    def label_everything(self, page, differs):
        """Answer every criterion of every reply that the round offers, and submit each."""
        page.goto(f"{self.program.url}/label/")
        self.look(page)
        self.press(page, re.compile("next reply|Go on"))
        done = 0
        while page.locator("[data-labelling]").count():
            page_at = page.url
            forms = page.locator("form[data-criterion]")
            # What a criterion says decides the answer, so that there is something to learn.
            for number in range(forms.count()):
                form = forms.nth(number)
                text = form.inner_text()
                met = len(text) % 3 != 0
                if differs and (done + number) % 6 == 0:
                    met = not met
                form.locator(f"label.{'met' if met else 'not'}").click()
            page.wait_for_function(
                "() => [...document.querySelectorAll('[data-state]')]"
                ".every(e => e.dataset.state === 'saved')"
            )
            page.get_by_role("button", name="Submit and next").click()
            page.wait_for_url(lambda url, at=page_at: url != at)
            done += 1
        self.look(page)
        return done


@pytest.fixture(params=[pytest.param("healthbench", marks=pytest.mark.long), "sample"])
def walk(request, live_program, new_page, axe, tmp_path):
    """Return a walk on a collection that was imported by command."""
    if request.param == "sample":
        path, collection, replies = ROOT / "fixtures" / "sample", "distressbench-sample", 6
        name = "DistressBench sample (synthetic)"
        respondents = ["Synthetic Hearth"]
    else:
        path = healthbench.published()
        if path is None:
            path = healthbench.write(tmp_path / healthbench.FILE, healthbench.examples())
        collection, replies = "healthbench-context-seeking", 20
        name = "HealthBench context seeking"
        respondents = ["HealthBench ideal completion"]
    live_program.manage("import_corpus", str(path))
    live_program.manage("shell", "-c", PEOPLE)
    return Walk(live_program, new_page, axe, collection, name, respondents, replies)


def test_the_road_from_a_corpus_file_to_a_leaderboard(walk, make_program, tmp_path):
    researcher = walk.sign_in("researcher@example.org")
    walk.open_round(researcher)
    for email, differs in (("one@example.org", False), ("two@example.org", True)):
        clinician = walk.sign_in(email)
        assert walk.label_everything(clinician, differs) == walk.replies
    read_agreement(walk, researcher)
    judge = train_and_run(walk, researcher)
    calibrate_and_approve(walk, researcher, judge)
    read_leaderboard(walk, researcher)
    export_everything(walk, researcher, make_program, tmp_path)


def read_agreement(walk, page):
    walk.go(page, "Rounds", "Walked round", "Do the clinicians agree?")
    cells = page.locator("tr.total td").all_inner_texts()
    assert all(re.match(r"[−–\d]", cell) or not cell for cell in cells), cells
    alpha = float(page.locator(".big").first.inner_text().replace("−", "-"))
    assert 0 < alpha < 1, "they agree on most, and not on all"


def check_rounds(page):
    """Take the labels of every round: the sample comes with one of its own."""
    for box in page.get_by_label(re.compile("Walked round|Sample calibration round")).all():
        box.check()


def train_and_run(walk, page):
    walk.go(page, "Judges", "Train a baseline")
    collection = page.get_by_label("Collection")
    collection.select_option(value=collection.locator("option").last.get_attribute("value"))
    check_rounds(page)
    walk.press(page, "Train")
    assert page.get_by_text(re.compile("baseline v1")).first.is_visible()
    judge = page.url
    walk.go(page, "Start a run")
    page.get_by_label("Collection").select_option(label=walk.name)
    walk.press(page, "Start")
    # The worker inside the serving process does it; the page follows by itself.
    page.get_by_text("done", exact=True).first.wait_for(timeout=120_000)
    walk.look(page)
    return judge


def calibrate_and_approve(walk, page, judge):
    page.goto(judge)
    walk.go(page, "Calibrate")
    check_rounds(page)
    page.get_by_label("What would be good enough").fill("Better than a constant answer.")
    page.get_by_label("Why the test labels are opened now").fill("To see where we stand.")
    walk.press(page, "Open the test labels and measure")
    shown = page.inner_text("main")
    assert "Sensitivity" in shown
    assert "Specificity" in shown
    assert "Macro-F1" in shown or "macro-F1" in shown
    page.get_by_label("Approve: scores may be published with it").check()
    walk.press(page, "Save the decision")
    reason = page.get_by_label("Reason", exact=True)
    assert reason.evaluate("field => field.validity.valueMissing"), "an approval needs a reason"
    reason.fill(REASON)
    walk.press(page, "Save the decision")
    assert page.get_by_text(REASON).is_visible()


def read_leaderboard(walk, page):
    page.goto(f"{walk.program.url}/results/{walk.collection}/")
    walk.look(page)
    shown = page.inner_text("main")
    for name in walk.respondents:
        assert name in shown
    assert "unapproved" not in shown.lower()
    (printed,) = json.loads(
        walk.program.manage("leaderboard", "--collection", walk.collection, "--json").stdout
    )
    assert printed["approved"] is True
    assert printed["ruler"][:12] in page.inner_text("body")
    for row in printed["rows"]:
        assert f"{100 * row['score']['value']:.1f}" in shown


def export_everything(walk, page, make_program, tmp_path):
    for path, words in (
        (f"results/{walk.collection}/leaderboard.csv", walk.respondents[0]),
        (walk.round_path + "labels.csv", "met"),
    ):
        answer = page.request.get(f"{walk.program.url}/{path}")
        assert answer.ok
        assert words in answer.text()
    out = tmp_path / "everything.zip"
    walk.program.manage("export_bundle", str(out))
    with zipfile.ZipFile(out) as archive:
        tables = json.loads(archive.read("manifest.json"))["tables"]
    assert {"labels", "label_events", "verdicts", "calibrations", "scores"} <= set(tables)
    elsewhere = make_program()
    elsewhere.migrate()
    elsewhere.manage("import_corpus", str(out))
    again = tmp_path / "again.zip"
    elsewhere.manage("export_bundle", str(again))
    assert again.read_bytes() == out.read_bytes(), "the same state gives the same bytes"

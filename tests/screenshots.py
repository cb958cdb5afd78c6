"""Take the pictures of the README from the running demo: python -m tests.screenshots."""

import re
import tempfile
from pathlib import Path

from tests.browsing import Browsing, fill_sign_in
from tests.program import ROOT, Program

FOLDER = ROOT / "static" / "img" / "readme"
# As the demo prints them.
PASSWORD, SAMPLE = "only-for-the-demo", "distressbench-sample"
SIZE = {"width": 1280, "height": 860}


def main() -> None:
    """Prepare a demo of its own, and photograph it as its people see it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Browsing() as browsing:
        program = Program(Path(folder))
        try:
            program.manage("demo", "--no-serve")
            program.start()

            def sign_in(email: str):  # type: ignore[no-untyped-def]
                page = browsing.browser.new_page(viewport=SIZE)
                page.goto(f"{program.url}/account/login/")
                fill_sign_in(page, email, PASSWORD)
                return page

            page = sign_in("clinician@example.org")
            page.goto(f"{program.url}/label/")
            page.get_by_role("button", name=re.compile("next reply|Go on")).click()
            page.wait_for_selector("[data-labelling]")
            for number, answer in enumerate(("met", "not", "met")):
                page.locator("form[data-criterion]").nth(number).locator(f"label.{answer}").click()
            page.wait_for_function(
                "() => document.querySelectorAll('[data-state=saved]').length >= 3"
            )
            page.evaluate("window.scrollTo(0, 0)")
            page.screenshot(path=FOLDER / "labelling.png")
            page = sign_in("researcher@example.org")
            page.goto(f"{program.url}/rounds/")
            page.get_by_role("link", name=re.compile("^Agreement")).first.click()
            page.screenshot(path=FOLDER / "agreement.png")
            page.goto(f"{program.url}/results/{SAMPLE}/")
            page.screenshot(path=FOLDER / "leaderboard.png")
        finally:
            program.remove()


if __name__ == "__main__":
    main()

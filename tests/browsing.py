"""A headless Chromium for tests: loopback only, and no page may fault unseen."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, sync_playwright

from tests.program import find_chromium

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    # Unlike a route handler, this leaves the browser's cache and timing as they are.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class Browsing:
    """A running browser, and the faults that its pages have shown."""

    playwright: Playwright
    browser: Browser

    def __enter__(self) -> Self:
        """Start the browser."""
        self._unsafe_before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
        # Playwright's own event loop makes Django take this thread for an asynchronous one.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS, headless=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the browser and its event loop."""
        self.browser.close()
        self.playwright.stop()
        if self._unsafe_before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]

    @contextmanager
    def watched(self) -> Iterator[Callable[..., Page]]:
        """Give out pages, and fail at the end when one left loopback, threw, or broke the CSP."""
        faults: list[str] = []
        contexts = []

        def new_page(**options: Any) -> Page:
            context = self.browser.new_context(**options)
            contexts.append(context)
            context.set_default_timeout(15_000)
            page = context.new_page()
            watch(page, faults)
            return page

        try:
            yield new_page
        finally:
            for context in contexts:
                context.close()
        assert not faults, "\n".join(["The pages showed faults:", *faults])


def watch(page: Page, faults: list[str]) -> None:
    """Collect what must never happen on a page."""

    def on_request(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname not in LOOPBACK:
            faults.append(f"request beyond loopback: {request.url}")

    def on_console(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            faults.append(f"policy broken at {page.url}: {message.text}")

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda error: faults.append(f"script error at {page.url}: {error}"))


def fill_sign_in(page: Page, email: str, password: str) -> None:
    """Sign in on the page that asks for it, and wait until it has let the person through."""
    page.fill("input[name=login]", email)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(lambda url: "/account/login" not in url)


def assert_accessible(page: Page, *, schemes: tuple[str, ...] = ("light", "dark")) -> None:
    """Fail with a readable list when axe finds a fault on the page in one of the colour schemes."""
    found: list[str] = []
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        for fault in Axe().run(page).response["violations"]:
            found.append(f"[{scheme}] {fault['id']} ({fault['impact']}): {fault['help']}")
            for node in fault["nodes"]:
                found.append(f"    {' '.join(node['target'])}: {node['html'][:160]}")
                checks = [check for kind in ("any", "all", "none") for check in node[kind]]
                found.extend(f"        {check['message']}" for check in checks)
    page.emulate_media(color_scheme="light")
    assert not found, "\n".join([f"axe at {page.url}:", *found])

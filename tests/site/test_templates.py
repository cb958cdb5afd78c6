"""What all templates, sheets and scripts keep to, read from the files themselves."""

import json
import re
from pathlib import Path

import pytest

from tests.program import ROOT

pytestmark = pytest.mark.no_database

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STATIC = sorted(
    path for path in (ROOT / "static").rglob("*") if path.suffix in {".css", ".js", ".svg"}
)


def ids(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("path", [*TEMPLATES, *STATIC], ids=ids([*TEMPLATES, *STATIC]))
def test_nothing_is_loaded_from_elsewhere(path):
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
    attributes = re.findall(r"""(?:src|srcset|href|action|formaction)\s*=\s*["']?\s*(\S+)""", text)
    sheets = re.findall(r"""(?:@import|url\()\s*["']?\s*([^"')]+)""", text)
    scripts = re.findall(r"""(?:import|from|fetch\()\s*["']([^"']+)""", text)

    loaded = [*attributes, *sheets, *scripts]
    assert [where for where in loaded if re.match(r"(https?:)?//", where)] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=ids(TEMPLATES))
def test_a_template_has_nothing_that_the_policy_forbids(path):
    text = re.sub(r"\{% comment %\}.*?\{% endcomment %\}", "", path.read_text(), flags=re.DOTALL)

    assert not re.search(r"\sstyle\s*=", text)
    assert not re.search(r"<style\b", text)
    assert not re.search(r"""<[^>]*\son[a-z]+\s*=""", text)
    assert not re.search(r"\bhx-on\b|js:|javascript:", text)
    for tag in re.findall(r"<script\b[^>]*>", text):
        assert "src=" in tag or "application/json" in tag, tag
    for trigger in re.findall(r'hx-trigger="([^"]*)"', text):
        assert "[" not in trigger, "a filter needs eval"


@pytest.mark.parametrize("path", TEMPLATES, ids=ids(TEMPLATES))
def test_a_form_that_writes_carries_its_token_and_works_without_javascript(path):
    text = path.read_text()
    for form in re.findall(r"<form\b.*?</form>", text, flags=re.DOTALL):
        opening = form[: form.index(">")]
        assert "method=" in opening, opening
        if "post" in opening or "attrs.method" in opening:
            assert "csrf_token" in form or "{% slot" in form, opening
    for link in re.findall(r"<a\b[^>]*hx-(?:get|post)[^>]*>", text, flags=re.DOTALL):
        assert "href=" in link, link


def test_htmx_runs_without_eval_and_shows_invalid_forms():
    text = (ROOT / "templates" / "base.html").read_text()
    config = json.loads(re.search(r"name=\"htmx-config\" content='([^']+)'", text)[1])

    assert config["allowEval"] is False
    assert config["allowScriptTags"] is False
    assert config["includeIndicatorStyles"] is False
    assert config["historyCacheSize"] == 0
    by_code = {rule["code"]: rule["swap"] for rule in config["responseHandling"]}
    assert by_code == {"204": False, "[23]..": True, "422": True, "[45]..": False}


@pytest.mark.parametrize("status", [400, 403, 404, 500, 503])
def test_every_error_has_a_page_in_our_frame(status):
    text = (ROOT / "templates" / f"{status}.html").read_text()
    assert '{% extends "base.html" %}' in text
    assert "To the start page" in text or status == 400

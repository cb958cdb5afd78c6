"""The words and small figures of the pages; no database."""

import re
from pathlib import Path

import pytest

from annotation.agreement import Estimate
from annotation.guidelines import render_guidelines
from annotation.views.figures import LEFT, RIGHT, place, whisker
from annotation.views.page import paragraphs_of
from annotation.wording import REASONS, alpha_words, duration_words, interval_words, number, percent

pytestmark = pytest.mark.no_database
ROOT = Path(__file__).resolve().parents[2]
NUMERICS = [
    *(ROOT / "annotation/agreement").glob("*.py"),
    ROOT / "annotation/bootstrap.py",
    ROOT / "scoring/aggregation.py",
    ROOT / "scoring/calibration.py",
]


def test_every_reason_code_of_the_numerics_has_plain_words():
    source = "\n".join(path.read_text() for path in NUMERICS)
    pattern = (
        r'(?:undefined\(|reason=|withheld = |Quantity\("\w+", \([^)]*\), [-\d.]+, [-\d.]+, )"(\w+)"'
    )
    codes = set(re.findall(pattern, source))
    assert {"no_variation", "too_few_units", "no_spread", "empty_denominator"} <= codes
    assert codes <= set(REASONS)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.785, "0.79"), (-0.234, "−0.23"), (-0.001, "0.00"), (1.0, "1.00")],
)
def test_numbers_have_two_decimals_and_a_true_minus(value, shown):
    assert number(value) == shown


def test_a_missing_share_is_a_dash():
    assert (percent(None), percent(0.0), percent(0.705)) == ("–", "0 %", "70 %")


@pytest.mark.parametrize(
    ("low", "start"),
    [(0.8, "reliable"), (0.799, "tentative"), (0.667, "tentative"), (0.666, "not reliable")],
)
def test_the_lower_limit_decides_about_alpha(low, start):
    assert alpha_words(Estimate(value=0.9, low=low, high=0.95)).startswith(start)


def test_an_alpha_without_interval_is_not_praised():
    estimate = Estimate(value=1.0, reason="no_spread")
    assert alpha_words(estimate) == "how sure this is cannot be said yet"
    assert interval_words(estimate).startswith("no interval: ")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (20, "under a minute"),
        (61, "about a minute"),
        (250, "about 4 minutes"),
        (3500, "about 58 minutes"),
        (7300, "about 2 hours"),
    ],
)
def test_durations_are_plain(seconds, words):
    assert duration_words(seconds) == words


def test_a_figure_stays_on_its_axis():
    assert (place(-0.9), place(-0.2), place(1.0)) == (LEFT, LEFT, RIGHT)
    drawn = whisker(Estimate(value=-0.5, low=-0.8, high=0.1))
    assert (drawn.low, drawn.value) == (LEFT, LEFT)
    assert drawn.label == "−0.50, −0.80 to 0.10"


def test_an_undefined_figure_says_why():
    drawn = whisker(Estimate(value=None, reason="no_pairable_units"))
    assert drawn.undefined == REASONS["no_pairable_units"]


def test_paragraphs_keep_their_lines_and_indents():
    text = "One.\n  - a\n  - b\n\n    code\r\n\r\n \nLast.\n"
    assert paragraphs_of(text) == ["One.\n  - a\n  - b", "    code", "Last."]
    assert paragraphs_of(" \n ") == []


def test_guidelines_have_no_html_of_their_own():
    html = render_guidelines(
        "# A\n\n###### B\n\n<b onclick=x>c</b>\n\n|a|b|\n|-|-|\n|1|2|\n\n[l](tel:988)"
    )
    assert "<h3>A</h3>" in html
    assert "<h6>B</h6>" in html
    assert "<b" not in html
    assert html.count('<div class="table-wrap"') == html.count("</table></div>") == 1
    assert '<a href="tel:988" rel="noopener noreferrer">l</a>' in html

"""Guidelines are written as Markdown and shown as safe HTML."""

import re
from itertools import count

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# Nothing that loads from elsewhere, and no identifiers that could meet the page's own.
_TAGS = {
    *("h3", "h4", "h5", "h6", "hr", "p", "br", "blockquote", "ul", "ol", "li"),
    *("a", "code", "em", "pre", "s", "strong"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto", "tel"}
_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def render_guidelines(text: str) -> SafeString:
    """Return Markdown as sanitised HTML; headings start below those of the page."""
    tokens = _markdown.parse(text)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{max(3, min(6, int(token.tag[1]) + 1))}"
    clean = nh3.clean(
        _markdown.renderer.render(tokens, _markdown.options, {}),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer",
    )
    # A wide table scrolls by itself, also from the keyboard; its regions need names of their own.
    number = count(1)
    opened = re.sub(
        "<table>",
        lambda _: (
            '<div class="table-wrap" role="region" tabindex="0"'
            f' aria-label="Table {next(number)} of the guidelines"><table>'
        ),
        clean,
    )
    # nh3 has left nothing but the listed elements and attributes.
    return mark_safe(opened.replace("</table>", "</table></div>"))

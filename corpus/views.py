"""Pages of the corpus: collections, and conversations with rubrics and replies."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from corpus import selectors
from corpus.access import READERS, collection_for, collections_visible_to, conversation_for
from corpus.forms import ConversationFilter
from distressbench_site.accounts.roles import current_user, role_required

CONVERSATIONS_PER_PAGE = 50


@require_safe
@role_required(*READERS)
def collection_list(request: HttpRequest) -> HttpResponse:
    """List the collections with what is in them."""
    visible = collections_visible_to(current_user(request))
    summaries = selectors.summarise_collections(visible)
    return render(request, "corpus/collection_list.html", {"summaries": summaries})


@require_safe
@role_required(*READERS)
def collection_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one collection: its dimensions, subcategories and conversations."""
    collection = collection_for(current_user(request), slug)
    form = ConversationFilter(request.GET or None, collection=collection)
    chosen: dict[str, object] = {}
    if form.is_valid():
        chosen = {
            "text": form.cleaned_data["q"],
            "subcategory": form.cleaned_data["subcategory"],
            "multi_turn": form.multi_turn,
            "status": form.cleaned_data["status"],
        }
    found = selectors.find_conversations(collection, **chosen)  # type: ignore[arg-type]
    page = Paginator(found, CONVERSATIONS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "collection": collection,
        "summary": selectors.summarise_collections([collection])[0],
        "dimensions": selectors.summarise_dimensions(collection),
        "subcategories": selectors.subcategories_with_counts(collection),
        "form": form,
        "filtered": any(value not in ("", None) for value in chosen.values()),
        "page_obj": page,
        "rows": selectors.conversation_rows(page.object_list),
        "crumbs": [{"url": reverse("collection-list"), "label": "Conversations"}],
    }
    status = 422 if form.errors else 200
    return render(request, "corpus/collection_detail.html", context, status=status)


@require_safe
@role_required(*READERS)
def conversation_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show one conversation with its published rubric and its replies."""
    conversation = conversation_for(current_user(request), slug, pk)
    collection = conversation.collection
    context = {
        "page": selectors.conversation_page(conversation),
        "conversation": conversation,
        "crumbs": [
            {"url": reverse("collection-list"), "label": "Conversations"},
            {"url": reverse("collection-detail", args=[collection.slug]), "label": collection.name},
        ],
    }
    return render(request, "corpus/conversation_detail.html", context)

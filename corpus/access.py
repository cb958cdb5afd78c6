"""Who may see which part of the corpus."""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from corpus.models import Collection, Conversation
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import ADMIN, RESEARCHER, has_role

# Rubrics carry weights and replies carry their respondents, which labelling must not show.
READERS = (RESEARCHER, ADMIN)


def collections_visible_to(user: User) -> QuerySet[Collection]:
    """Return the collections that a person may read with weights and respondents."""
    everything = Collection.objects.all()
    return everything if has_role(user, *READERS) else everything.none()


def collection_for(user: User, slug: str) -> Collection:
    """Return one collection that a person may read, else 404."""
    return get_object_or_404(collections_visible_to(user), slug=slug)


def conversation_for(user: User, slug: str, pk: int) -> Conversation:
    """Return one conversation that a person may read, else 404."""
    readable = Conversation.objects.select_related(
        "collection", "subcategory", "supersedes", "superseded_by"
    )
    return get_object_or_404(readable, collection=collection_for(user, slug), pk=pk)

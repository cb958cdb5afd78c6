"""How people name collections, rounds and judges on the command line."""

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from annotation.models import Round
from corpus.models import Collection
from scoring.models import Judge


def find_collection(slug: str) -> Collection:
    """Return a collection by its slug; the fault lists those there are."""
    found = Collection.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Collection.objects.values_list("slug", flat=True)) or "none"
        raise CommandError(f"There is no collection “{slug}”. There are: {known}.")
    return found


def find_rounds(names: Iterable[str]) -> list[Round]:
    """Return rounds by name or number; the fault lists those there are."""
    found = []
    for name in names:
        item = Round.objects.filter(name=name).first()
        if item is None and name.isdigit():
            item = Round.objects.filter(pk=int(name)).first()
        if item is None:
            known = ", ".join(f"“{each}”" for each in Round.objects.values_list("name", flat=True))
            raise CommandError(f"There is no round “{name}”. There are: {known or 'none'}.")
        found.append(item)
    return found


def find_judge(name: str) -> Judge:
    """Return a judge by NAME (its newest version) or NAME@VERSION."""
    slug, _, version = name.partition("@")
    judges = Judge.objects.filter(name=slug).order_by("-version")
    if version:
        if not version.isdigit():
            raise CommandError(f"“{version}” is no version; write {slug}@1, for example.")
        judges = judges.filter(version=int(version))
    found = judges.first()
    if found is None:
        known = ", ".join(
            f"{judge.name}@{judge.version}" for judge in Judge.objects.defer("artifact")
        )
        raise CommandError(f"There is no judge “{name}”. There are: {known or 'none'}.")
    return found


def as_fault(error: ValidationError) -> CommandError:
    """Return what a person did wrong as the command's own fault, without a traceback."""
    return CommandError(" ".join(error.messages))

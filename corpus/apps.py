"""The corpus app."""

from django.apps import AppConfig


class CorpusConfig(AppConfig):
    """Name the app."""

    name = "corpus"

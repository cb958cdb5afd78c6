"""The scoring app."""

from django.apps import AppConfig


class ScoringConfig(AppConfig):
    """Name the app."""

    name = "scoring"

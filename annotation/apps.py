"""The annotation app."""

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    """Name the app."""

    name = "annotation"

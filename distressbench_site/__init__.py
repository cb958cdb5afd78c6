"""The project: settings, entry points, role homes."""

from distressbench_site.celery import app as celery_app

__all__ = ["celery_app"]

"""The site app: settings, entry points, commands that span the others."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Name the app."""

    name = "distressbench_site"
    label = "site_root"

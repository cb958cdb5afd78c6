"""The lowest layer: people, roles, the audit log, and the machinery of guards."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class AccountsConfig(AppConfig):
    """Install the guards of every app around each migration."""

    name = "distressbench_site.accounts"
    label = "accounts"
    verbose_name = "people"

    def ready(self) -> None:
        """Connect the guards; importing the checks registers them."""
        from distressbench_site.accounts import checks, guards  # noqa: F401

        pre_migrate.connect(guards.drop_before_migrate, sender=self)
        post_migrate.connect(guards.install_after_migrate, sender=self)

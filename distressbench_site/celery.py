"""The Celery application; the database owns the work, the broker only wakes workers."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "distressbench_site.settings")

app = Celery("distressbench")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

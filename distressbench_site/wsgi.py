"""The WSGI entry point for gunicorn and waitress."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "distressbench_site.settings")

application = get_wsgi_application()

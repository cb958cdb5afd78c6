"""The site map."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

from distressbench_site import views

# The admin site stands behind the same door as everything else.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

handler500 = views.server_error

urlpatterns = [
    # /
    path("", views.home, name="home"),
    # /healthz
    path("healthz", views.healthz, name="healthz"),
    # /method/
    path("method/", views.method, name="method"),
    # /account/: sign-in, sign-out, password, second factor
    path("account/", include("allauth.urls")),
    # /people/, /invitations/<token>/, /audit/
    path("", include("distressbench_site.accounts.urls")),
    # /collections/
    path("collections/", include("corpus.urls")),
    # /label/, /rounds/
    path("", include("annotation.urls")),
    # /judges/, /runs/, /calibrations/, /results/
    path("", include("scoring.urls")),
    # /admin/
    path("admin/", admin.site.urls),
]

"""The pages about people."""

from django.urls import path

from distressbench_site.accounts import views

urlpatterns = [
    # /people/
    path("people/", views.person_list, name="person-list"),
    # /people/invite/
    path("people/invite/", views.person_invite, name="person-invite"),
    # /people/7/roles/
    path("people/<int:pk>/roles/", views.person_roles, name="person-roles"),
    # /people/7/deactivate/
    path("people/<int:pk>/deactivate/", views.person_deactivate, name="person-deactivate"),
    # /people/7/reactivate/
    path("people/<int:pk>/reactivate/", views.person_reactivate, name="person-reactivate"),
    # /people/invitations/7/withdraw/
    path(
        "people/invitations/<int:pk>/withdraw/",
        views.invitation_withdraw,
        name="invitation-withdraw",
    ),
    # /invitations/<token>/: the link in an invitation
    path("invitations/<str:token>/", views.invitation_accept, name="invitation-accept"),
    # /audit/
    path("audit/", views.audit_list, name="audit-list"),
]

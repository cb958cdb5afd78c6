"""The pages of the corpus app."""

from django.urls import path

from corpus import views

urlpatterns = [
    # /collections/
    path("", views.collection_list, name="collection-list"),
    # /collections/distressbench/
    path("<slug:slug>/", views.collection_detail, name="collection-detail"),
    # /collections/distressbench/42/
    path("<slug:slug>/<int:pk>/", views.conversation_detail, name="conversation-detail"),
]

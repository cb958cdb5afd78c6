"""The pages of the corpus app."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []

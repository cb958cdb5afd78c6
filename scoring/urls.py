"""The pages of the scoring app."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []

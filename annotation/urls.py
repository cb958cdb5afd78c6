"""The pages of the annotation app."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []

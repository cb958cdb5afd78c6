"""The pages of the annotation app."""

from django.urls import path

from annotation.views import agreement, labelling, rounds

urlpatterns = [
    # /label/
    path("label/", labelling.labelling_home, name="labelling-home"),
    # /label/rounds/<id>/
    path("label/rounds/<int:pk>/", labelling.labelling_round, name="labelling-round"),
    # /label/rounds/<id>/next/
    path("label/rounds/<int:pk>/next/", labelling.labelling_next, name="labelling-next"),
    # /label/assignments/<id>/
    path("label/assignments/<int:pk>/", labelling.assignment_detail, name="assignment-detail"),
    # /label/assignments/<id>/criteria/<id>/
    path(
        "label/assignments/<int:pk>/criteria/<int:criterion_id>/",
        labelling.label_save,
        name="label-save",
    ),
    # /label/assignments/<id>/submit/
    path(
        "label/assignments/<int:pk>/submit/", labelling.assignment_submit, name="assignment-submit"
    ),
    # /label/assignments/<id>/skip/
    path("label/assignments/<int:pk>/skip/", labelling.assignment_skip, name="assignment-skip"),
    # /label/assignments/<id>/decline/
    path(
        "label/assignments/<int:pk>/decline/",
        labelling.assignment_decline,
        name="assignment-decline",
    ),
    # /label/assignments/<id>/reopen/
    path(
        "label/assignments/<int:pk>/reopen/", labelling.assignment_reopen, name="assignment-reopen"
    ),
    # /rounds/
    path("rounds/", rounds.round_list, name="round-list"),
    # /rounds/new/
    path("rounds/new/", rounds.round_create, name="round-create"),
    # /rounds/<id>/
    path("rounds/<int:pk>/", rounds.round_detail, name="round-detail"),
    # /rounds/<id>/open/
    path("rounds/<int:pk>/open/", rounds.round_open, name="round-open"),
    # /rounds/<id>/pause/
    path("rounds/<int:pk>/pause/", rounds.round_pause, name="round-pause"),
    # /rounds/<id>/close/
    path("rounds/<int:pk>/close/", rounds.round_close, name="round-close"),
    # /rounds/<id>/overlap/
    path("rounds/<int:pk>/overlap/", rounds.round_overlap, name="round-overlap"),
    # /rounds/<id>/members/add/
    path("rounds/<int:pk>/members/add/", rounds.round_member_add, name="round-member-add"),
    # /rounds/<id>/members/<id>/remove/
    path(
        "rounds/<int:pk>/members/<int:annotator_id>/remove/",
        rounds.round_member_remove,
        name="round-member-remove",
    ),
    # /rounds/<id>/agreement/
    path("rounds/<int:pk>/agreement/", agreement.round_agreement, name="round-agreement"),
    # /rounds/<id>/labels.csv
    path("rounds/<int:pk>/labels.csv", agreement.round_labels_csv, name="round-labels-csv"),
]

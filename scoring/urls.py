"""The pages of the scoring app."""

from django.urls import path

from scoring.views import calibrations, judges, results, runs

urlpatterns = [
    # /judges/
    path("judges/", judges.judge_list, name="judge-list"),
    # /judges/baseline/
    path("judges/baseline/", judges.baseline_train, name="baseline-train"),
    # /judges/3/
    path("judges/<int:pk>/", judges.judge_detail, name="judge-detail"),
    # /judges/3/calibrate/
    path("judges/<int:pk>/calibrate/", calibrations.calibration_create, name="calibration-create"),
    # /calibrations/7/
    path("calibrations/<int:pk>/", calibrations.calibration_detail, name="calibration-detail"),
    # /calibrations/7/decide/
    path(
        "calibrations/<int:pk>/decide/",
        calibrations.calibration_decide,
        name="calibration-decide",
    ),
    # /runs/
    path("runs/", runs.run_list, name="run-list"),
    # /runs/new/
    path("runs/new/", runs.run_create, name="run-create"),
    # /runs/5/
    path("runs/<int:pk>/", runs.run_detail, name="run-detail"),
    # /runs/5/pause/, /runs/5/resume/, /runs/5/cancel/, /runs/5/retry/
    path("runs/<int:pk>/pause/", runs.run_pause, name="run-pause"),
    path("runs/<int:pk>/resume/", runs.run_resume, name="run-resume"),
    path("runs/<int:pk>/cancel/", runs.run_cancel, name="run-cancel"),
    path("runs/<int:pk>/retry/", runs.run_retry, name="run-retry"),
    # /results/
    path("results/", results.result_list, name="result-list"),
    # /results/distressbench/?judge=3
    path("results/<slug:slug>/", results.leaderboard, name="leaderboard"),
    # /results/distressbench/leaderboard.csv?judge=3
    path("results/<slug:slug>/leaderboard.csv", results.leaderboard_csv, name="leaderboard-csv"),
]

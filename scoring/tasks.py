"""Tasks that wake the engine; a lost message costs nothing, as the sweep finds work in tables."""

import logging
import threading
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.db import OperationalError, close_old_connections

from scoring import engine
from scoring.services import refresh_all_scores

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 30.0

# Set when the process ends: the engine stops after the batch in work.
stopping = threading.Event()


@shared_task
def work_run(run_id: int) -> None:
    """Work one slice of a run and ask for the next one."""
    if stopping.is_set():
        return
    try:
        outcome = engine.work_on(run_id, stop=stopping)
    except OperationalError as error:
        # Busy or away: the leases lapse, and the sweep comes back to them.
        logger.warning("run %s: %s", run_id, error)
        return
    if outcome == "more" and not stopping.is_set():
        work_run.delay(run_id)


@shared_task
def sweep() -> None:
    """Wake a worker for each run that nobody works on, and refresh scores of changed data."""
    try:
        for run_id in engine.waiting_runs():
            work_run.delay(run_id)
        refresh_all_scores()
    except OperationalError as error:
        logger.warning("sweep: %s", error)


def keep_sweeping(stop: threading.Event, every: float = SWEEP_SECONDS) -> None:
    """Ask for a sweep now and again and again until `stop` is set."""
    while not stop.is_set():
        try:
            # A worker that was busy all the time needs no old sweeps.
            sweep.apply_async(expires=every)
        except Exception:
            logger.exception("the broker cannot be reached")
        finally:
            close_old_connections()
        stop.wait(every)


@worker_ready.connect
def start_sweeping(**_: Any) -> None:
    """Find what was left behind when a worker of its own process starts, and later."""
    threading.Thread(target=keep_sweeping, args=(stopping,), name="sweep", daemon=True).start()


@worker_shutting_down.connect
def stop_working(**_: Any) -> None:
    """Let the engine stop after the batch in work."""
    stopping.set()

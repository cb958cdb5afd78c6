"""manage.py train_baseline: train the built-in baseline judge."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser

from scoring.management.commands._naming import as_fault, find_collection, find_rounds
from scoring.services import train_baseline


class Command(BaseCommand):
    """Train the baseline on the agreed labels of a collection's dev part."""

    help = "Train the built-in baseline judge on the agreed labels of a collection's dev part."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--collection", required=True, metavar="SLUG")
        parser.add_argument(
            "--round",
            required=True,
            action="append",
            metavar="NAME",
            help="name or number of a round; give it again for further rounds",
        )
        parser.add_argument("--name", default="baseline", help="name of the judge")

    def handle(self, *args: Any, **options: Any) -> None:
        """Train and say what came of it."""
        collection = find_collection(options["collection"])
        try:
            judge = train_baseline(
                collection=collection,
                rounds=find_rounds(options["round"]),
                actor=None,
                name=options["name"],
            )
        except ValidationError as error:
            raise as_fault(error) from error
        trained = judge.params["trained_on"]
        self.stdout.write(
            f"{judge.name}@{judge.version}: trained on {trained['n_units']} agreed labels"
            f" ({trained['n_met']} met) of {trained['n_conversations']} dev conversations."
            f" Digest {judge.digest[:12]}."
        )

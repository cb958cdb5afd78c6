"""Static files: hashed and compressed once collected, plain before that."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticStorage(CompressedManifestStaticFilesStorage):
    """Serve the collected, hashed file where there is one; tests and checks need no collecting."""

    def stored_name(self, name: str) -> str:
        """Return the hashed name, or the name itself while nothing is collected."""
        if not self.hashed_files:
            return name
        return str(super().stored_name(name))

"""Formats of the corpus: canonical JSON, rows of a bundle, faults with their place. No Django."""

from corpus.schema.canonical import canonical_json, digest, places

__all__ = ["canonical_json", "digest", "places"]

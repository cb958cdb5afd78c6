"""Pages of the scoring app, one module per noun."""

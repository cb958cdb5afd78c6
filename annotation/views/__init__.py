"""The pages of labelling, of rounds, and of agreement."""

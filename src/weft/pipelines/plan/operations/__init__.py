"""The five operations, resolved on the columns they get."""

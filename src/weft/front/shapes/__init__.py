"""The shapes of the files of a workspace."""

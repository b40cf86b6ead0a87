"""The entities of a workspace: YAML files to checked values, every error with its location."""

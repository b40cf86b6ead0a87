"""The shapes of the files of a workspace: which keys they have, and what each may hold."""

"""Resolvers: rules, templates and precedence."""

"""Where data lies: rules, templates, precedence."""

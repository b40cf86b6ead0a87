"""Projects, resolver rules and operations, planned without data and without a JVM."""

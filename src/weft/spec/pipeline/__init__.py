"""What users say about datasets, projects, operations, resolvers and scenarios."""

"""Reading and writing through Spark, and the session itself."""

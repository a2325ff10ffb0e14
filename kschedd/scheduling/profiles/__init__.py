"""Frameworks (profiles ready to run), and the metrics of their plugins."""

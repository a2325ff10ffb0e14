"""The embedded cluster's controllers: synchronous rules that read objects and return writes."""

"""The controllers of the embedded cluster: synchronous rules that read objects and return writes."""

"""The controllers of the embedded cluster, which are synchronous rules that read objects and return writes."""

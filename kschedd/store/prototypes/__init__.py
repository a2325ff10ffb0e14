"""Prototypes: pods and nodes from which one request creates many copies."""

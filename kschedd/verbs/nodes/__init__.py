"""Verbs on nodes: drain, cordon, taint, top."""

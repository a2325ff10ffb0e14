"""Explanations of a pod's placement, and of changes that would make a pod fit."""

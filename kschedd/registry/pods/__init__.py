"""Pods and pod templates: defaults and validation."""

"""Verbs on objects: get, describe, create, apply, edit, delete, wait, rollout."""

"""Admission webhooks: which webhooks a write calls, and what their responses mean. The store itself makes no calls."""

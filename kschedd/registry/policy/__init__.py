"""Policies, quotas, roles, webhooks, flow control, certificates and definitions: defaults and validation."""

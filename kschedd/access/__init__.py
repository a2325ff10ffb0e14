"""Network access: addresses, users, static tokens, TLS, and the audit log of writes."""

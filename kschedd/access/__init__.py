"""Who may come in from where: addresses, users, static tokens, TLS, and the audit log of writes."""

"""The grammar of verbs, the targets they name, and the session they run in."""

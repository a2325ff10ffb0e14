"""The grammar of verbs, the objects that verbs name, and the session in which verbs run."""

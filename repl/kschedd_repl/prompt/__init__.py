"""The prompt: one line with completion, checks, highlighting, history and a status bar."""

"""Results of commands as text, Markdown, JSON and XML."""

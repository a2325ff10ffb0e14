"""Tools for assistants (language models) that call the daemon's methods, served with the Model Context Protocol."""

"""What an assistant (a language model) is served with: tools over the daemon's methods, by Model Context Protocol."""

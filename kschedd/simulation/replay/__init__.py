"""Replays of a recording (`kschedd.recording`), either exactly or under another configuration."""

"""Replays of a recording (`kschedd.recording`), either exact or under another configuration."""

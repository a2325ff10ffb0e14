"""Replays: a recording (`kschedd.recording`) played again, exactly, or under another configuration."""

"""What runs a controller: its interface, turns and timers."""

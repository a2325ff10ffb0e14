"""The schema of each kind, and its uses: type checks, decoding and field labels."""

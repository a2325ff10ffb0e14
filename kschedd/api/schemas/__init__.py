"""The schema of each kind, and what follows from it: types, decoding, field labels."""

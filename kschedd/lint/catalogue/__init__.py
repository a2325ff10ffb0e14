"""The rules of `kschedd lint`, by the part of a manifest that they check."""

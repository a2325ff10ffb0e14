"""One file per actor: a small Trio task around one pure machine."""

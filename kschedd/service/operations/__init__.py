"""What a request does to objects: one function per operation, on a store, without waiting."""

"""The effects of requests on objects: one function per operation, on a store, without waiting."""

"""Operations on objects: one function per operation, which runs on a store without waiting."""

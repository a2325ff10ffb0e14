"""Operations on objects: reading, writing, watching, events."""

"""Operations on objects: functions that run on a store without waiting."""

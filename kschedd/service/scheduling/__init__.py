"""Operations on the scheduler: its queue, decisions and explanations, the debugger, time."""

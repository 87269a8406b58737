"""What happened, read back from frames: steps, and what they mean to people. Pure: no clock, no I/O."""

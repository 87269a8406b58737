"""Pure job logic: decide and fold. No clock, no chance, no I/O."""

"""Pages for people, and the scripts that write those of them that follow from the code."""

"""One module per verb of `python -m replay`."""

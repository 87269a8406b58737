"""The command line: one module per noun, each thin."""

"""A mixed day in small, on every process of the product, with two of them killed on the way."""

"""The paper's experiments as declarations, and the studies around them."""

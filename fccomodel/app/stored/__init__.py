"""What is kept in folders: results and comparisons."""

"""Folders of results and comparisons."""

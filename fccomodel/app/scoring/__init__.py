"""Answers at new rows: scores, predictions, and programs of their own."""

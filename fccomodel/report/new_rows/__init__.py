"""Conclusions from a sample of rows about all rows: confidence intervals, margins, subsamples."""

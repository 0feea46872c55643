"""What a sample of rows says of all rows: confidence intervals, margins, subsamples."""

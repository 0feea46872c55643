"""The report in words: a line of verdict, advice if it is not good enough, and notes on what was sampled,
assumed or bounded."""

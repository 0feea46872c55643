"""Models written in Python: the same abstract syntax as the text's, statement by statement, each with
the caller's place."""

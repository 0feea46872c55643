"""Text to a typed problem: lexer, statements, syntax tree, checks; and back, as canonical text."""

"""What an editor asks about a text: diagnostics, hovers, completions, places of names, formatting.

Everything but ``server`` answers from a text and an offset, and knows no editor.
"""

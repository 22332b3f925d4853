"""Programs of other systems, read into the text of this one. Operators may be named here."""

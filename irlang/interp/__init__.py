"""The meanings of the equations, one a module."""

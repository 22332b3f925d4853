"""Valid networks, made from the definitions alone; moves that make invalid ones valid."""

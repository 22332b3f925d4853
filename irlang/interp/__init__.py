"""The meanings of an operator: each module reads flat equations and nothing else."""

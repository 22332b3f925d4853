"""Targets: how each framework spells a program, and the processes that run what is emitted.

One target per file. Nothing in this package imports a framework but `worker`, which runs in a
process of its own, and the programs that are emitted.
"""

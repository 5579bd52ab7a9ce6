"""Draws hostile input from a grammar, a file of this package for each kind. All by a seed.

    python -m tests.hostile --seed 3 --draws 1000

Each draw is a command in a process of its own, in a folder of its own. It falls short if it prints a stack trace, if it
fails with more or fewer lines than its mistakes, leaves something behind, shows what is hidden, runs what a file names,
takes over 60 s, or over 2 GB.
"""

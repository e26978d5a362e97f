"""Pulls: the algorithm, its two ports, and the run over several resources."""

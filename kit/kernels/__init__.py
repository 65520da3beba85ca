"""Kernels that more than one notebook or benchmark uses, one operation a file: the reference, the plain version, the better one."""

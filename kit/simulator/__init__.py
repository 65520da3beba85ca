"""The simulated GPU: Triton's own JIT and compiler for a real target, and the IR that comes out executed on the CPU.

driver    the Triton driver: what `kernel[grid](...)` meets in place of CUDA's. The only module that touches private Triton
reader    TTIR text -> operations
values    a value of the IR for all programs at once
executor  control flow: blocks, branches, loops, calls
operations  one table: the operation's name -> what it computes
memory    allocations, loads, stores, atomics, illegal accesses
hazards   what is watched while a kernel runs: integers that wrapped
"""

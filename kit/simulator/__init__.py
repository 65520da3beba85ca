"""The simulated GPU: Triton's own JIT and compiler for a real target, and the IR that comes out executed on the CPU.

driver        the Triton driver: what `kernel[grid](...)` meets in place of CUDA's. The only module that touches private Triton
tuning        `@triton.autotune`: each configuration compiled, none timed
launch        a launch: read the kernel, bind its arguments, run its programs in batches

reader        TTIR and TTGIR text -> operations
values        a value of the IR for all programs at once
executor      control flow: blocks, branches, loops, calls
operations    one table: the operation's name -> what it computes. With arithmetic (element by element), libdevice, fusion (which products
              and sums round once), collective (across a block), atomics, descriptors
memory        allocations, loads, stores, illegal accesses
strides       the same table with offsets and masks carried as descriptions (lanes), so that a contiguous access is one copy

races         races inside a program. With layouts (who holds which element), flow (which memory an operation touches), warps (where the
              warps of a program meet), schedule (a thread a warp) and ledger (who touched what)
hazards       what a dry run watches: integers that wrapped. With paper_memory (addresses), footprints (programs that touch each other's
              data), undefined (lanes that nothing defines) and dependence
"""

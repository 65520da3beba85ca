"""A masked copy: the least that a bandwidth-bound kernel can do.

`copy_reference`  torch's clone
`copy`            one program a block
"""

import torch
import triton
import triton.language as tl


def copy_reference(x):
    """A copy of x."""
    return x.clone()


@triton.jit
def copy_kernel(
    x_ptr,  # (n,)
    y_ptr,  # (n,)
    n,
    BLOCK: tl.constexpr,  # elements a program owns
):
    """y = x; one program owns BLOCK elements."""
    pid = tl.program_id(0).to(tl.int64)

    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(y_ptr + offs, x, mask=mask)


def copy(x):
    """A copy of a contiguous x."""
    y = torch.empty_like(x)
    n = x.numel()
    copy_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096, num_warps=8)
    return y

"""Writing the keys and values of new tokens into a paged cache.

`write_kv_reference`  the truth: indexing in torch
`write_kv`            one program a token: its keys and values of all heads are one contiguous row each
"""

import triton
import triton.language as tl


def write_kv_reference(k, v, k_cache, v_cache, slots):
    """k_cache[slots[t]] = k[t], v_cache[slots[t]] = v[t]; k, v (tokens, heads, size), caches (num_slots, heads, size)."""
    k_cache[slots] = k
    v_cache[slots] = v


@triton.jit
def write_kv_kernel(
    k_ptr,  # (tokens, row), rows stride_kt apart
    v_ptr,  # (tokens, row), rows stride_vt apart
    k_cache_ptr,  # (num_slots, row), contiguous
    v_cache_ptr,  # (num_slots, row), contiguous
    slots_ptr,  # (tokens,), the slot of each token; below 0: none
    stride_kt,
    stride_vt,
    row,  # elements of a token: heads * size
    BLOCK: tl.constexpr,  # row or more
):
    """k_cache[slots[t]] = k[t] and the same for v; one program owns one token."""
    pid = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots_ptr + pid).to(tl.int64)

    offs = tl.arange(0, BLOCK)
    mask = (offs < row) & (slot >= 0)

    k = tl.load(k_ptr + pid * stride_kt + offs, mask=mask)
    v = tl.load(v_ptr + pid * stride_vt + offs, mask=mask)

    tl.store(k_cache_ptr + slot * row + offs, k, mask=mask)
    tl.store(v_cache_ptr + slot * row + offs, v, mask=mask)


def write_kv(k, v, k_cache, v_cache, slots):
    """Write k and v (tokens, heads, size) to the slots of the caches (num_slots, heads, size). A token's heads are contiguous."""
    row = k.shape[1] * k.shape[2]
    BLOCK = triton.next_power_of_2(row)
    num_warps = min(8, max(1, BLOCK // 256))
    write_kv_kernel[(k.shape[0],)](k, v, k_cache, v_cache, slots, k.stride(0), v.stride(0), row, BLOCK=BLOCK, num_warps=num_warps)

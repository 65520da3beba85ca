"""Suspects that own rows. Their text is that of exercise 15's cells, and a test holds the two together."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows_kernel(
    x_ptr,  # float32, (n_rows, n_cols), rows stride_xm apart
    out_ptr,  # float32, (n_rows, n_cols), rows stride_om apart
    stride_xm,
    stride_om,
    n_cols,
    BLOCK: tl.constexpr,  # n_cols or more
):
    """out = softmax(x) along the row; one program owns one row."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols

    x = tl.load(x_ptr + row * stride_xm + offs, mask=mask, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)

    tl.store(out_ptr + row * stride_om + offs, y, mask=mask)


def softmax_rows(x, out):
    """Write softmax(x) to out; a row has 1 to 32,768 finite elements, side by side."""
    n_rows, n_cols = x.shape
    BLOCK = triton.next_power_of_2(n_cols)
    softmax_rows_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, BLOCK, num_warps=4)


@triton.jit
def norm_rows_kernel(
    x_ptr,  # float16, (n_rows, n_cols), rows stride_xm apart
    w_ptr,  # float16, (n_cols,)
    out_ptr,  # float16, (n_rows, n_cols), rows stride_om apart
    stride_xm,
    stride_om,
    n_cols,
    BLOCK: tl.constexpr,  # n_cols or more
):
    """out = x / sqrt(mean(x^2) + 1e-6) * w along the row; one program owns one row."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols

    x = tl.load(x_ptr + row * stride_xm + offs, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offs, mask=mask)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + 1e-6) * w

    tl.store(out_ptr + row * stride_om + offs, y, mask=mask)


def norm_rows(x, w, out):
    """Write the RMS norm of x to out; a row has 1 to 16,384 elements, side by side."""
    n_rows, n_cols = x.shape
    BLOCK = triton.next_power_of_2(n_cols)
    warps = min(16, max(1, BLOCK // 512))
    strides = (x.stride(0), out.stride(0))
    norm_rows_kernel[(n_rows,)](x, w, out, *strides, n_cols, BLOCK, num_warps=warps)


@triton.jit
def gate_rows_kernel(
    gate_ptr,  # float32, (n_rows, n_cols)
    up_ptr,  # float32, (n_rows, n_cols)
    out_ptr,  # float32, (n_rows, n_cols)
    stride_m,  # from one row to the next
    stride_om,
    n_cols,
    BLOCK: tl.constexpr,
):
    """out = gate * sigmoid(gate) * up; one program owns BLOCK columns of one row."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_cols

    gate = tl.load(gate_ptr + row * stride_m + offs, mask=mask)
    up = tl.load(up_ptr + row * stride_m + offs, mask=mask)

    tl.store(out_ptr + row * stride_om + offs, gate * tl.sigmoid(gate) * up, mask=mask)


def gate_rows(gate, up, out):
    """Write silu(gate) * up to out; rows of a view may be farther apart, 1 to 65,536 columns."""
    n_rows, n_cols = gate.shape
    grid = (n_rows, triton.cdiv(n_cols, 1024))
    gate_rows_kernel[grid](gate, up, out, gate.stride(0), out.stride(0), n_cols, BLOCK=1024)


@triton.jit
def mean_square_kernel(
    x_ptr,  # float16, (n_rows, n_cols), rows stride_xm apart
    out_ptr,  # float32, (n_rows,)
    stride_xm,
    n_cols,
    BLOCK: tl.constexpr,
):
    """out = mean(x^2) along the row; one program owns one row."""
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)

    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + offs, mask=offs < n_cols, other=0.0)
        acc += x * x

    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


def mean_square(x, out):
    """Write the mean square of each row to out; 1 to 65,536 finite elements, side by side."""
    n_rows, n_cols = x.shape
    mean_square_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=1024)


@triton.jit
def smooth_rows_kernel(
    x_ptr,  # float32, (n_rows, n_cols)
    tmp_ptr,  # float32, (n_rows, n_cols)
    out_ptr,  # float32, (n_rows, n_cols)
    n_cols,
    BLOCK: tl.constexpr,  # n_cols or more
):
    """out[i] = (e[i - 1] + e[i]) / 2 with e = exp(x) and e[-1] = 0; one program owns one row."""
    row = tl.program_id(0).to(tl.int64) * n_cols
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols

    e = tl.exp(tl.load(x_ptr + row + offs, mask=mask))
    tl.store(tmp_ptr + row + offs, e, mask=mask)
    before = tl.load(tmp_ptr + row + offs - 1, mask=mask & (offs > 0), other=0.0)

    tl.store(out_ptr + row + offs, (before + e) / 2, mask=mask)


def smooth_rows(x, out):
    """Write exp(x), smoothed along the row, to out; contiguous, 1 to 8,192 columns."""
    n_rows, n_cols = x.shape
    tmp = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = triton.next_power_of_2(n_cols)
    warps = min(8, max(1, BLOCK // 256))
    smooth_rows_kernel[(n_rows,)](x, tmp, out, n_cols, BLOCK, num_warps=warps)


@triton.jit
def mirror_rows_kernel(
    x_ptr,  # float32, (n_rows, n_cols)
    out_ptr,  # float32, (n_rows, n_cols)
    n_cols,
    BLOCK: tl.constexpr,  # n_cols or more
):
    """out[i] = x[i] + x[n_cols - 1 - i]; one program owns one row."""
    row = tl.program_id(0).to(tl.int64) * n_cols
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols

    x = tl.load(x_ptr + row + offs, mask=mask)
    tl.store(out_ptr + row + offs, x, mask=mask)
    tl.debug_barrier()
    mirrored = tl.load(out_ptr + row + n_cols - 1 - offs, mask=mask)
    tl.debug_barrier()

    tl.store(out_ptr + row + offs, x + mirrored, mask=mask)


def mirror_rows(x, out):
    """Write x plus its mirror image to out; contiguous, 1 to 8,192 columns."""
    n_rows, n_cols = x.shape
    BLOCK = triton.next_power_of_2(n_cols)
    warps = min(8, max(1, BLOCK // 256))
    mirror_rows_kernel[(n_rows,)](x, out, n_cols, BLOCK, num_warps=warps)

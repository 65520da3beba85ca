"""Inputs of the suspects: those of the exercise's own tests (`usual`), and those that a right kernel passes (`cases`)."""

from __future__ import annotations

import torch

from kit.ghosts import ghost


def normal(device, *shape, dtype=torch.float32, scale=1.0, mean=0.0):
    """Seeded normal numbers."""
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.randn(*shape, generator=generator) * scale + mean).to(dtype).to(device)


def apart(x, more=24):
    """x as a view of rows that are `more` elements farther apart, with nan between them."""
    wide = torch.full((x.shape[0], x.shape[1] + more), float("nan"), dtype=x.dtype, device=x.device)
    view = wide[:, 3 : 3 + x.shape[1]]
    return view.copy_(x)


def ring(device, size, pos, n):
    """A ring of `size` numbered tokens, the next slot, and how many are asked for."""
    return torch.arange(1000, 1000 + size, dtype=torch.int32, device=device), pos, n


def ring_cases(device):
    sizes = [(128, 100, 40), (128, 128 - 1, 127), (128, 7, 20), (7, 0, 7), (1, 0, 1), (1000, 300, 513), (512, 255, 257)]
    return {f"ring of {size}, pos {pos}, n {n}": ring(device, size, pos, n) for size, pos, n in sizes}


def columns(device, rows, cols):
    return normal(device, rows, cols), normal(device, cols)


def column_cases(device):
    shapes = [(4, 768), (1, 1), (3, 341), (5, 1024), (2, 1025), (7, 100), (1, 4096)]
    found = {f"{rows} x {cols}": columns(device, rows, cols) for rows, cols in shapes}
    return found | {"3,000,000 x 1,024 on paper": (ghost((3_000_000, 1024), torch.float32), ghost(1024, torch.float32))}


def row_cases(device, sizes, make=normal, views=True, **more):
    """One row or several of each size, a view of rows farther apart, and 3 million rows on paper."""
    found = {f"{rows} x {cols}": (make(device, rows, cols, **more),) for rows, cols in sizes}
    if views:
        rows, cols = sizes[-1]
        found["a view"] = (apart(make(device, rows, cols, **more)),)
    dtype = more.get("dtype", torch.float32)
    return found | {"3,000,000 x 1,024 on paper": (ghost((3_000_000, 1024), dtype),)}


def softmax_cases(device):
    found = row_cases(device, [(2, 1000), (3, 1), (1, 1024), (2, 1025), (5, 17)])
    found["a row 10,000 up"] = (normal(device, 2, 100, mean=1e4),)
    found["negative rows"] = (normal(device, 2, 100, mean=-50.0),)
    return found | {"32,768 columns": (normal(device, 2, 32_768),), "20,000 columns": (normal(device, 1, 20_000),)}


def norm(device, rows, cols, **more):
    return normal(device, rows, cols, dtype=torch.float16, **more), normal(device, cols, dtype=torch.float16)


def norm_cases(device):
    found = {f"{rows} x {cols}": norm(device, rows, cols) for rows, cols in [(4, 100), (2, 1), (1, 512), (3, 513), (2, 4096), (1, 16_384)]}
    found["large elements"] = norm(device, 2, 100, scale=3000.0)
    found["a mean of 1,000"] = norm(device, 2, 100, mean=1000.0)
    found["all equal"] = (torch.full((2, 100), 7.0, dtype=torch.float16, device=device), norm(device, 2, 100)[1])
    found["zeros"] = (torch.zeros((2, 100), dtype=torch.float16, device=device), norm(device, 2, 100)[1])
    found["a view"] = (apart(norm(device, 3, 100)[0]), norm(device, 3, 100)[1])
    return found | {"3,000,000 x 1,024 on paper": (ghost((3_000_000, 1024), torch.float16), ghost(1024, torch.float16))}


def gates(device, rows, cols):
    """The two halves of one tensor, as a linear layer leaves them."""
    both = normal(device, rows, 2 * cols)
    return both[:, :cols], both[:, cols:]


def gate_row_cases(device):
    found = {f"halves of {rows} x {2 * cols}": gates(device, rows, cols) for rows, cols in [(4, 100), (1, 1), (3, 1024), (2, 1025)]}
    gate, up = gates(device, 3, 100)
    found["up in a tensor of its own"] = (gate, up.contiguous())
    found["gate in a tensor of its own"] = (gate.contiguous(), up)
    found["both farther apart"] = (apart(gate), apart(up, 40))
    large = ghost((3_000_000, 1024), torch.float32, (2048, 1))
    return found | {"3,000,000 x 1,024 on paper": (large, large)}


def mean_square_cases(device):
    found = row_cases(device, [(3, 200), (2, 1), (1, 1024), (2, 1025), (1, 5000), (4, 17)], dtype=torch.float16)
    found["elements of 300"] = (torch.full((2, 40), 300.0, dtype=torch.float16, device=device),)
    found["one outlier"] = (normal(device, 2, 100, dtype=torch.float16).index_fill(1, torch.tensor([3], device=device), 20_000.0),)
    return found | {"small elements": (normal(device, 2, 100, dtype=torch.float16, scale=1e-3),)}


def contiguous_row_cases(device):
    return row_cases(device, [(4, 200), (2, 1), (1, 255), (2, 256), (2, 257), (3, 1000), (2, 4096), (1, 8192)], views=False)


def real_rows(cases):
    """The cases that have memory: of a kernel whose wrapper makes a scratch tensor."""
    return lambda device: {title: inputs for title, inputs in cases(device).items() if isinstance(inputs[0], torch.Tensor)}


def heads(device, seqs, num_heads, n):
    return normal(device, seqs, num_heads, n), normal(device, num_heads)


def head_cases(device):
    found = {f"{s} x {h} x {n}": heads(device, s, h, n) for s, h, n in [(2, 4, 1024), (1, 1, 1025), (3, 5, 2000)]}
    for seqs, num_heads, n in [(512, 128, 1024), (4096, 128, 2048)]:
        found[f"{seqs} x {num_heads} x {n} on paper"] = ghost((seqs, num_heads, n), torch.float32), ghost(num_heads, torch.float32)
    return found


def blocks(device, num_blocks, size, numbers):
    return normal(device, num_blocks, size, dtype=torch.float16), torch.tensor(numbers, dtype=torch.int32, device=device)


def block_cases(device):
    found = {f"{m} x {n}": blocks(device, m, n, [m - 1, 0, m // 2]) for m, n in [(64, 256), (1, 1), (5, 1024), (5, 1025)]}
    found["blocks farther apart"] = (apart(normal(device, 5, 100, dtype=torch.float16)), blocks(device, 5, 1, [4, 0, 4])[1])
    for num_blocks, size in [(32_769, 65_536), (1_048_576, 65_536)]:
        table = torch.tensor([num_blocks - 1, 0], dtype=torch.int32, device=device)
        found[f"block {num_blocks - 1:,} of {size:,} on paper"] = ghost((num_blocks, size), torch.float16), table
    return found


def gated(device, tokens, num_heads, size):
    half = torch.float16
    return normal(device, tokens, num_heads, size, dtype=half), normal(device, tokens, num_heads, dtype=half)


def gate_head_cases(device):
    found = {f"{t} x {h} x {n}": gated(device, t, h, n) for t, h, n in [(4, 32, 128), (1, 8, 64), (3, 5, 80), (17, 3, 256), (1, 1, 1)]}
    for tokens in (1, 64, 8192, 131_072):
        x, g = ghost((tokens, 32, 128), torch.float16), ghost((tokens, 32), torch.float16)
        found[f"{tokens:,} x 32 x 128 on paper"] = x, g
    return found


def tails(device, n, length):
    return normal(device, n), length


def tail_cases(device):
    sizes = [(64, 40), (1, 1), (64, 1), (64, 16), (64, 17), (1024, 1000), (1025, 1024), (5000, 0), (64, 64)]
    return {f"length {length} of {n}": tails(device, n, length) for n, length in sizes}

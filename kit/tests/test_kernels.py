"""The kernels of kit/kernels against their references: edges, strided and offset inputs, every dtype they are used with."""

import pytest
import torch

from kit import machine
from kit.kernels import copy, kv_cache, matmul, rms_norm, rope, softmax


@pytest.fixture(autouse=True)
def device():
    torch.manual_seed(0)
    return machine.start().device


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 127), (5, 128), (9, 129), (2, 4096)])
def test_rows(device, rows, columns, dtype):
    wide = torch.randn(rows, columns + 3, device=device, dtype=dtype)
    w = torch.randn(columns, device=device, dtype=dtype)
    for x in (wide[:, :columns].contiguous(), wide[:, 1 : columns + 1]):
        torch.testing.assert_close(rms_norm.rms_norm(x, w), rms_norm.rms_norm_reference(x, w))
        torch.testing.assert_close(softmax.softmax(x), softmax.softmax_reference(x))


def test_softmax_survives_a_large_row(device):
    x = torch.full((2, 100), 3e4, device=device, dtype=torch.float16)
    assert torch.isfinite(softmax.softmax(x)).all()


@pytest.mark.parametrize(("tokens", "heads", "size"), [(1, 1, 64), (3, 5, 96), (130, 8, 128), (4100, 2, 64)])
def test_rope(device, tokens, heads, size):
    wide = torch.randn(tokens, 3 * heads, size, device=device, dtype=torch.float16)
    x = wide[:, heads : 2 * heads]  # the keys in a tensor of queries, keys and values
    angle = torch.randn(tokens, size // 2, device=device)
    cos, sin = angle.cos().half(), angle.sin().half()
    wanted = rope.rope_reference(x, cos, sin)
    torch.testing.assert_close(rope.rope(x, cos, sin), wanted)


@pytest.mark.parametrize("heads", [1, 3, 8])
def test_write_kv(device, heads):
    tokens, num_slots, size = 37, 64, 80
    qkv = torch.randn(tokens, 3, heads, size, device=device, dtype=torch.float16)
    k, v = qkv[:, 1], qkv[:, 2]
    slots = torch.randperm(num_slots, device=device)[:tokens].int()
    caches = [torch.zeros(num_slots, heads, size, device=device, dtype=torch.float16) for _ in range(4)]
    kv_cache.write_kv(k, v, *caches[:2], slots)
    kv_cache.write_kv_reference(k, v, *caches[2:], slots.long())
    assert torch.equal(caches[0], caches[2])
    assert torch.equal(caches[1], caches[3])


def test_a_token_without_a_slot_is_not_written(device):
    k = torch.ones(2, 1, 8, device=device)
    cache = torch.zeros(4, 1, 8, device=device)
    kv_cache.write_kv(k, k, cache, cache.clone(), torch.tensor([-1, 2], dtype=torch.int32, device=device))
    assert cache.sum() == 8
    assert cache[2].sum() == 8


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097])
def test_copy(device, n):
    x = torch.randn(n + 1, device=device)
    assert torch.equal(copy.copy(x[1:].clone()), x[1:])


SMALL = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 2, "num_warps": 4, "num_stages": 2}


@pytest.mark.parametrize(("M", "N", "K"), [(32, 32, 32), (100, 70, 40), (129, 64, 33)])
def test_matmul(device, M, N, K):
    a, b = torch.randn(M, K, device=device, dtype=torch.float16), torch.randn(N, K, device=device, dtype=torch.float16)
    torch.testing.assert_close(matmul.matmul(a, b.T, SMALL), (a.float() @ b.T.float()).half(), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(("M", "N", "K"), [(32, 32, 32), (100, 72, 40)])
def test_matmul_tma(device, M, N, K):
    a, b = torch.randn(M, K, device=device, dtype=torch.float16), torch.randn(K, N, device=device, dtype=torch.float16)
    torch.testing.assert_close(matmul.matmul_tma(a, b, SMALL), (a.float() @ b.float()).half(), rtol=1e-3, atol=1e-2)

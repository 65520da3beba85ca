"""Answers to exercise 07, int64 offsets."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("07.1",)


def _edge(name, text, cause=""):
    return Answer("07.1", name, (text,), cause)


def _read(name, text, cause="", about=""):
    return Answer("07.2", name, (text,), cause, about)


def _write(name, text, cause="", about=""):
    return Answer("07.3", name, (text,), cause, about)


K = "k_ptrs = k_ptr + pid_t.to(tl.int64) * stride_kt + pid_h * stride_kh + offs_d\n"
K32 = "k_ptrs = k_ptr + pid_t * stride_kt + pid_h * stride_kh + offs_d\n"
C = "cache_ptrs = cache_ptr + pid_h.to(tl.int64) * stride_ch + slot * stride_cs + offs_d\n"
C32 = "cache_ptrs = cache_ptr + pid_h * stride_ch + slot * stride_cs + offs_d\n"

WRONG = [
    _edge("where a token begins", "row = num_heads * head_size\nreturn -(-(2**31) // row)", "Which of its elements decides"),
    _edge("2^31 - 1 divided", "return (2**31 - 1) // (num_heads * head_size)", "Is 2^31 - 1 divided"),
    _edge("bytes", "return 2**31 // (num_heads * head_size * 2)", "Are these bytes"),
    _edge("unsigned", "return 2**32 // (num_heads * head_size)", "int32 has a sign"),
    _edge("heads left out", "return 2**31 // head_size", "is num_heads missing"),
    _edge("a count of tokens", "return 2**31 // (num_heads * head_size) + 1", "Is this the number of tokens"),
    _edge("the last good one", "return 2**31 // (num_heads * head_size) - 1", "Is 1 taken off once too often"),
    _edge("rounded", "return round(2**31 / (num_heads * head_size))", "Is the quotient rounded"),
    _edge("in float32", "return int((torch.tensor(2.0**31) * (1 / (num_heads * head_size))).item() + 0.02)", "Is the quotient rounded"),
    _edge("a float", "return 2**31 / (num_heads * head_size)", "use //"),
    _read("as it was", "x_ptrs = cache_ptr + block_id * stride_block + offs", "cast one of them to tl.int64", "memory"),
    _read("cast too late", "x_ptrs = cache_ptr + (block_id * stride_block).to(tl.int64) + offs", "Is the product cast", "memory"),
    _read(
        "cast too late, by name",
        "offset = block_id * stride_block\nx_ptrs = cache_ptr + offset.to(tl.int64) + offs",
        "Is the product cast",
        "memory",
    ),
    _read("the sum cast", "x_ptrs = cache_ptr + tl.cast(block_id * stride_block + offs, tl.int64)", "Is the product cast", "memory"),
    _read(
        "int64 on the wrong operand",
        "x_ptrs = cache_ptr + block_id * stride_block + offs.to(tl.int64)",
        "Is the cast on another operand",
        "memory",
    ),
    _read(
        "a mask that hides it",
        "offset = block_id * stride_block + offs\nmask = mask & (offset >= 0)\nx_ptrs = cache_ptr + offset",
        "only hides the wrap",
        "memory",
    ),
    _read("uint32", "x_ptrs = cache_ptr + block_id.to(tl.uint32) * stride_block + offs", "uint32 only moves the edge", "memory"),
    _read(
        "the loaded value cast",
        "x_ptrs = cache_ptr + block_id * stride_block + offs\nx = tl.load(x_ptrs, mask=mask).to(tl.int64)",
        "Is the loaded value cast",
        "memory",
    ),
    _read(
        "the pointer cast",
        "x_ptrs = (cache_ptr.to(tl.int64) + block_id * stride_block).to(cache_ptr.dtype) + offs",
        "The pointer has 64 bits already",
        "memory",
    ),
    _read(
        "in two halves",
        "half = stride_block // 2\nx_ptrs = cache_ptr + block_id * half + block_id * (stride_block - half) + offs",
        "in steps the edge is only further out",
        "memory",
    ),
    _read(
        "large offsets masked",
        "offset = block_id.to(tl.int64) * stride_block + offs\nmask = mask & (offset < 2147483648)\nx_ptrs = cache_ptr + offset",
        "does a mask leave it out",
        "values",
    ),
    _read("the table ignored", "x_ptrs = cache_ptr + pid.to(tl.int64) * stride_block + offs", "wrong on small caches too", "values"),
    _read(
        "no mask",
        "x_ptrs = cache_ptr + block_id.to(tl.int64) * stride_block + offs\nmask = offs >= 0",
        "does the mask still hold",
        "memory",
    ),
    _write("as it was", K32 + C32, "cast one of them to tl.int64", "memory"),
    _write("only the read", K + C32, "The read is right and the write is not", "memory"),
    _write("only the write", K32 + C, "The write is right and the read is not", "memory"),
    _write(
        "cast too late",
        K + "cache_ptrs = cache_ptr + (pid_h * stride_ch).to(tl.int64) + slot * stride_cs + offs_d",
        "Is the product cast",
        "memory",
    ),
    _write(
        "int64 on the wrong operands",
        "k_ptrs = k_ptr + pid_t * stride_kt + pid_h.to(tl.int64) * stride_kh + offs_d\n"
        "cache_ptrs = cache_ptr + pid_h * stride_ch + slot.to(tl.int64) * stride_cs + offs_d",
        "Is the cast on another operand",
        "memory",
    ),
    _write(
        "uint32",
        "k_ptrs = k_ptr + pid_t.to(tl.uint32) * stride_kt + pid_h * stride_kh + offs_d\n"
        "cache_ptrs = cache_ptr + pid_h.to(tl.uint32) * stride_ch + slot * stride_cs + offs_d",
        "uint32 only moves the edge",
        "memory",
    ),
    _write(
        "a mask that hides it",
        K + "offset = pid_h * stride_ch + slot * stride_cs + offs_d\nmask_d = mask_d & (offset >= 0)\ncache_ptrs = cache_ptr + offset",
        "only hides the wrap",
        "memory",
    ),
    _write(
        "the token's number as slot",
        K + "cache_ptrs = cache_ptr + pid_h.to(tl.int64) * stride_ch + pid_t * stride_cs + offs_d",
        "goes to slot_ptr's slot",
        "values",
    ),
    _write(
        "large offsets masked",
        K + "offset = pid_h.to(tl.int64) * stride_ch + slot * stride_cs + offs_d\n"
        "mask_d = mask_d & (offset < 2147483648)\ncache_ptrs = cache_ptr + offset",
        "does a mask leave it out",
        "values",
    ),
    _write("late tokens masked", K + C + "mask_d = mask_d & (pid_t < 139_810)", "does a mask leave it out", "values"),
    _write(
        "the pointer cast",
        K + "cache_ptrs = (cache_ptr.to(tl.int64) + pid_h * stride_ch * 2).to(cache_ptr.dtype) + slot * stride_cs + offs_d",
        "The pointer has 64 bits already",
    ),
    _write(
        "strides exchanged",
        K + "cache_ptrs = cache_ptr + pid_h.to(tl.int64) * stride_cs + slot * stride_ch + offs_d",
        "does each stride multiply its own index",
        "memory",
    ),
]

RIGHT = [
    _edge("with floor", "import math\nreturn math.floor(2**31 / (num_heads * head_size))"),
    _edge("counted down", "row = num_heads * head_size\nreturn -(-(2**31 - row + 1) // row)"),
    _read("the stride cast", "x_ptrs = cache_ptr + block_id * stride_block.to(tl.int64) + offs"),
    _read("tl.cast", "x_ptrs = cache_ptr + tl.cast(block_id, tl.int64) * stride_block + offs"),
    _read("by name", "wide = block_id.to(tl.int64)\nblock_ptr = cache_ptr + wide * stride_block\nx_ptrs = block_ptr + offs"),
    _read(
        "two steps, each in 64 bits",
        "half = stride_block // 2\nx_ptrs = cache_ptr + block_id.to(tl.int64) * half\n"
        "x_ptrs += block_id.to(tl.int64) * (stride_block - half) + offs",
    ),
    _read(
        "all of it in 64 bits",
        "offs = offs.to(tl.int64)\nx_ptrs = cache_ptr + (offs + tl.load(table_ptr + pid).to(tl.int64) * stride_block)",
    ),
    _write(
        "the strides cast",
        "k_ptrs = k_ptr + pid_t * stride_kt.to(tl.int64) + pid_h * stride_kh + offs_d\n"
        "cache_ptrs = cache_ptr + pid_h * stride_ch.to(tl.int64) + slot * stride_cs + offs_d",
    ),
    _write("the numbers cast first", "pid_t = pid_t.to(tl.int64)\npid_h = pid_h.to(tl.int64)\n" + K32 + C32),
]

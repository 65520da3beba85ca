"""Exercise 14.3: the capstone from decode to a million tokens, and all thirteen rules, as kit.examine looks at them."""

from __future__ import annotations

import torch

from kit import machine
from kit.graders.ex14_inputs import BLOCK_SIZE, BLOCKS, FULL, Case
from kit.graders.ex14_reference import Given, written
from kit.graders.ex14_values import judge_values
from kit.graders.ex14_write import WRITE_MISTAKES
from kit.graders.noting import launches_through
from kit.graders.paper import grid_picture
from kit.graders.step import Mistake, Step, counted
from kit.rules import RULES
from kit.rules.child import notes as look
from kit.rules.note import Note
from kit.rules.subject import Subject

# What the values are compared at: few tokens with padding, and a prompt whose last tile is partial.
CASES = (
    Case("few", 5, padding=(2,)),
    Case("prompt", 517, kv_heads=1, padding=(516,), block_size=16),
)
HEADS = {"kv_heads": 8, "group": 4, "size": 128}
TOKENS = (1, 2, 3, 16, 33, 64, 100, 256, 700, 1_024, 4_096, 8_192, FULL)
# (tokens, programs, whether at most): a program for each of a token's key heads, one for each of an H200's 132 multiprocessors, 1,536
# elements a program.
PROGRAMS = ((1, 8, False), (64, 132, False), (8_192, 32_768, True))
MOST_VARIANTS = 4
# What executes programs one by one looks at a small model, so that a whole prompt is few: the prompt's tile is then looked at as well.
SMALL = {"kv_heads": 1, "group": 4, "size": 128}
SMALL_TOKENS = (1, 517)
EXECUTING = (1, 5, 9, 10)
# What searches for the size at which an offset wraps looks at the largest alone.
SEARCHING = (7,)


def make(tokens, kv_heads, group, size):
    """The arguments of a call, as the engine makes them: a slice of a wider row, the caches' halves of one allocation, the last slots."""
    device = machine.current().device
    columns = (group + 2) * kv_heads * size
    large = tokens > 4_096
    blocks, positions = (BLOCKS, FULL) if large else (tokens // BLOCK_SIZE + 4, tokens + 64)
    qkv = torch.randn(tokens, 2 * columns, device=device, dtype=torch.bfloat16)[:, columns:]
    cache = torch.randn(blocks, 2, BLOCK_SIZE, kv_heads, size, device=device, dtype=torch.bfloat16)
    count = torch.arange(tokens, device=device, dtype=torch.int32)
    slots = count + (blocks * BLOCK_SIZE - tokens)
    cos_sin = torch.rand(positions, size, device=device)
    weights = (torch.rand(size, device=device, dtype=torch.bfloat16) for _ in range(2))
    return (qkv, count, slots, cos_sin, *weights, cache[:, 0], cache[:, 1], 1e-6)


def grade_rules(answer, trial):
    """Judge `serve_qkv`: its values, its programs from decode to prefill, then what each of the thirteen rules notes."""
    trial.evidence = machine.current().evidence
    for case in CASES:
        judge_values(answer, trial, case)
    kernels = _kernels(answer, trial)
    large = [_subject(kernel, answer, HEADS, TOKENS) for kernel in kernels]
    small = [_subject(kernel, answer, SMALL, SMALL_TOKENS) for kernel in kernels]
    full = [_subject(kernel, answer, HEADS, (FULL,)) for kernel in kernels]
    _programs(trial, large)
    for rule in sorted(RULES, key=lambda rule: rule.group == "launch"):  # what takes longest comes last
        for subject in small if rule.number in EXECUTING else full if rule.number in SEARCHING else large:
            _rule(trial, rule, subject)
        trial.case(f"rule {rule.number}, {rule.title}")


def _subject(kernel, answer, model, tokens):
    """The Subject of a model's sizes: only tokens may grow, the rest is what the model is."""
    subject = Subject(kernel, lambda tokens: answer(*make(tokens, **model)), None, None, [{"tokens": n} for n in tokens])
    named = _NAMES.keys() <= set(kernel.arg_names) and "eps" in kernel.arg_names
    subject.reference = (lambda *args: _reference(kernel, args)) if named else None
    return subject


# The tensors of Given by the names that the cell of 14.2 has for them. A kernel with other names is looked at without a reference.
_NAMES = {f"{field}_ptr": field for field in Given.__dataclass_fields__ if field != "eps"}


def _reference(kernel, args):
    """{argument: what it must hold} for the arguments of a launch."""
    named = dict(zip(kernel.arg_names, args, strict=False))
    given = Given(**{field: named[name] for name, field in _NAMES.items()}, eps=named["eps"])
    outputs = zip(("qkv_ptr", "k_cache_ptr", "v_cache_ptr"), written(given), strict=True)
    return {name: one.to(named[name].dtype) for name, one in outputs}


def _kernels(answer, trial):
    """The kernels that a call of a token launches, in order."""
    found = []

    def launched(kernel, grid, before):
        return lambda *args, **options: found.append(kernel)

    with launches_through(launched):
        trial.call(answer, *make(1, **HEADS), ran="1 token")
    return list(dict.fromkeys(found))


def _programs(trial, subjects):
    """Judge how many programs there are at both ends and in the middle."""
    for tokens, limit, most in PROGRAMS:
        ran = f"{counted(tokens, 'token')} of 32 and 8 heads of 128"
        try:
            launches = [subject.ghosts({"tokens": tokens}) for subject in subjects]
        except Exception as error:  # noqa: BLE001  whatever an answer raises is a finding
            trial.failed(error, ran)
        programs = sum(launch.programs for launch in launches)
        if programs > limit if most else programs < limit:
            expected = f"{'at most' if most else 'at least'} {limit:,}"
            told = {
                "ran": ran,
                "where": "the grid",
                "got": f"{programs:,}",
                "expected": expected,
                "picture": grid_picture(launches[0].grid),
            }
            facts = {"many" if most else "few": tokens}
            trial.problem("launch", f"{ran}: {counted(programs, 'program')}, expected {expected}", facts, **told)
        trial.case(ran)


def _rule(trial, rule, subject):
    """Note as a problem what a rule calls wrong or fragile."""
    notes = look(subject, rule.number)
    variants = next((note.numbers["variants"] for note in notes if (note.rule, note.key) == (4, "variants")), 0)
    if variants > MOST_VARIANTS:
        text = next(note.text for note in notes if note.key == "variants")
        notes = [*notes, Note(4, "fragile", text, "compiled", "many variants")]
    for note in notes:
        if note.verdict in ("wrong", "fragile") and not _of_the_table(note, subject):
            _tell(trial, rule, note, subject)


def _of_the_table(note, subject):
    """True for hard inputs in the only float32 tensor, the cosines and sines: 1e38 is none, and overflows float32 by right."""
    tensor = subject.ghosts().named.get(note.numbers.get("argument"))
    return (note.rule, getattr(tensor, "dtype", None)) == (10, torch.float32)


def _tell(trial, rule, note, subject):
    ran = f"rule {rule.number}, {rule.title}"
    where = f"line: {note.source}" if note.source else subject.kernel.__name__
    told = {"ran": ran, "where": where, "got": note.verdict, "expected": "nothing wrong or fragile"}
    trial.problem("answer", f"{ran}: {note.verdict}: {note.text}", {"rule": rule.number, "key": note.key, "note": note}, **told)


# ---- what goes wrong
def _key(rule, *keys):
    return lambda f: f.get("rule") == rule and (not keys or f["key"] in keys)


def _of_rule(rule):
    where = f"lesson {rule.notebook[:2]} explains it"
    return Mistake(
        f"rule {rule.number}", _key(rule.number), f"The rule is named; {where}. Mend the kernel in 14.2 or its launch, and run both cells."
    )


STEP_3 = Step(
    number="14.3",
    title="From decode to a million tokens, by all rules",
    spec="Choose BLOCK_T by the number of tokens; nothing may be wrong or fragile by any of the thirteen rules.",
    answer="function",
    call="serve_qkv(qkv, positions, slots, cos_sin, q_weight, k_weight, k_cache, v_cache, eps)",
    size="about 2 lines",
    grade=grade_rules,
    patience=6,
    mistakes=(
        Mistake(
            "one token",
            lambda f: f.get("few") == 1,
            "One token leaves most of the GPU idle: cut its heads among several programs, one for each key head at least.",
        ),
        Mistake(
            "few",
            lambda f: "few" in f,
            "64 tokens should keep 132 multiprocessors busy: is BLOCK_T too large for decode?",
        ),
        Mistake(
            "many",
            lambda f: "many" in f,
            "A long prompt needs more work a program: 4 tokens and a key head's group are 3,072 elements. Is BLOCK_T 1 at 8,192 tokens?",
        ),
        Mistake(
            "a variant for each number of tokens",
            _key(4, "many variants", "constexpr varies"),
            "Each value of a constexpr is compiled: does BLOCK_T, or another, follow the number of tokens? Two values do for all.",
        ),
        Mistake(
            "a class for nothing",
            _key(4, "class for nothing"),
            "A number that changes with every batch gets a variant for 1, for multiples of 16 and for the rest: put it in "
            "do_not_specialize.",
        ),
        Mistake(
            "spills",
            _key(3, "spills", "shared memory"),
            "The tile does not fit the registers: is BLOCK_T too large, or are there too few warps for it?",
        ),
        Mistake(
            "tiny programs",
            _key(8, "tiny programs"),
            "A program of a long prompt has too little to do: several tokens, with all heads of the group.",
        ),
        *WRITE_MISTAKES,
        *(_of_rule(rule) for rule in RULES),
    ),
    hints=(
        "In decode there are few tokens: the programs should be many, so each has one. In a long prompt there are programs enough, and "
        "each can have several tokens. Two values of BLOCK_T will do; each is a variant.",
        'n_tokens changes with every batch, and no address is made of it: @triton.jit(do_not_specialize=["n_tokens"]) in 14.2 saves the '
        "variants of its classes.",
        "BLOCK_T = 1 if qkv.shape[0] < 512 else 4",
    ),
)

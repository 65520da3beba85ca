"""What a reader brings a kernel of their own to: shapes, numbers, examine and its rules, the sweep, progress."""

from mutations import Mutation, pytest


def _in(file, name, old, new, plants, *check):
    return Mutation(f"workbench {name}", f"kit/{file}", old, new, plants, pytest(*check))


MUTATIONS = [
    _in(
        "examine.py",
        "dead child",
        "            notes.append(_ended(begun[-1], outcome, timeout))",
        "            pass",
        "a rule in which the child dies leaves no note",
        "test_examine.py",
    ),
    _in(
        "examine.py",
        "rest",
        "left = [number for number in left if",
        "left = [number for number in () if",
        "a dead child ends all rules",
        "test_examine.py",
    ),
    _in(
        "report_card.py",
        "allowed",
        'if f"{note.rule}:{note.key}" not in allowed]',
        "if note]",
        "what a team accepts is told all the same",
        "test_examine.py",
    ),
    _in(
        "command_line.py", "status", "return 1 if bad else 0", "return 0", "CI is told that a wrong kernel is fine", "test_command_line.py"
    ),
    _in(
        "rules/capture.py",
        "caught",
        "        raise _Caught\n",
        "        return others\n",
        "a launch is caught and run as well",
        "test_capture.py",
    ),
    _in(
        "rules/on_paper.py",
        "memory",
        "    if _floating(name, args, kwargs):\n",
        "    if not _floating(name, args, kwargs):\n",
        "tensors on paper are made for real",
        "test_capture.py",
        "paper",
    ),
    _in(
        "rules/growth.py",
        "growth",
        "low, high = (low, value) if answer else (value, None)",
        "low, high = (value, None)",
        "no limit is ever met",
        "test_rules_launched.py",
    ),
    _in("rules/r06_grid.py", "headroom", "ENOUGH = 4", "ENOUGH = 0", "a grid close to its limit is fine", "test_rules_launched.py"),
    _in("rules/hard_trials.py", "hard", "GROSS = 4\n", "GROSS = 1e30\n", "no hard input is ever wrong", "test_rules_launched.py"),
    _in(
        "occupancy.py",
        "occupancy",
        '"registers": warps // num_warps',
        '"registers": held.warps // num_warps',
        "registers bound nothing",
        "test_rules_compiled.py",
    ),
    _in(
        "workbench.py",
        "stopped",
        "    except KeyboardInterrupt:\n",
        "    except ZeroDivisionError:\n",
        "an interrupted sweep loses all",
        "test_workbench.py",
    ),
    _in("workbench.py", "choice", "{**computed, **choices[0]})", "computed)", "no choice can be timed", "test_workbench.py"),
    _in("workbench.py", "inputs", "if len(values) > 1}", "if values}", "a panel has inputs that move nothing", "test_workbench.py"),
    _in(
        "simulator/touched.py",
        "pointers",
        "flow.touched(op) - {UNKNOWN}",
        "()",
        "no argument is read or written",
        "test_shapes.py",
        "followed",
    ),
    _in(
        "simulator/flow.py",
        "loaded pointer",
        "return self.origins.get(op.operands[0]) or {UNKNOWN}",
        "return self.origins.get(op.operands[0]) or set()",
        "a pointer read from memory is nobody's",
        "test_dry_run.py",
    ),
    _in(
        "paper.py",
        "second name",
        "[name for name, _, _ in arguments]  # the IR",
        "program.kernel.parameter_names  # the IR",
        "an argument is told by another name",
        "test_dry_run.py",
    ),
    _in(
        "telling.py", "empty output", "or not tensor.numel():", "or False:", "an output of no elements breaks a dry run", "test_dry_run.py"
    ),
    _in(
        "simulator/driver.py",
        "fusion",
        'plan.program.fuses = getattr(metadata, "enable_fp_fusion", True)',
        "plan.program.fuses = True",
        "warp by warp, products are always fused",
        "test_fusion.py",
    ),
    _in("numbers.py", "bound", "wrong = int((errors > 1).sum())", "wrong = 0", "every answer is close", "test_numbers.py"),
    _in("numbers.py", "controls", '"passed" if passes(answer) else "failed"', '"failed"', "every tolerance is proven", "test_numbers.py"),
    _in(
        "progress_file.py",
        "previous",
        "                os.replace(before, keep)\n",
        "                pass\n",
        "no previous copy is kept",
        "test_progress.py",
    ),
    _in(
        "sandbox_queue.py",
        "turns",
        "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "everybody has a turn at once",
        "test_sandbox.py",
        "turn",
    ),
    Mutation(
        "workbench sockets",
        "scripts/kernel_sockets.py",
        'return "ipc"',
        'return "tcp"',
        "two kernels may be given one port",
        pytest("scripts/tests/test_kernel_sockets.py"),
    ),
]

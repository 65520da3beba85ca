"""The sandbox's fork server: a process that has torch and triton loaded and no CUDA context, and forks a child for each run.

It is started by kit.sandbox_client and speaks over one socket, a packet a request: the path of a job (with three descriptors:
stdout, stderr, status), or `kill PID`. On a run's status pipe it writes `pid N` and, when the child has ended and its
process group is gone, `end STATUS` (as of `os.waitpid`). It ends, with all its children, when the socket is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import traceback

# Loaded before the first fork, so that no child pays for it. None of these starts a thread or touches CUDA (a test looks).
PRELOAD = (
    "torch",
    "triton",
    "triton.language",
    "triton.compiler.compiler",
    "triton.compiler.code_generator",
    "triton.runtime.jit",
    "triton.runtime.autotuner",
    "triton.backends.nvidia.compiler",
    "triton.backends.nvidia.driver",
    "kit",
    "kit.machine",
    "kit.sandbox_child",
    "kit.simulator.driver",
    "kit.simulator.operations",
    "kit.evidence",
)  # the last for torch.broadcast_shapes, which brings sympy
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_libc = ctypes.CDLL(None)


def main(descriptor):
    """Serve the socket at `descriptor` until it is closed."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what a cell leaves behind becomes our child, and is found
    for name in PRELOAD:
        importlib.import_module(name)
    _hash_triton()
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that it marks
    _Server(socket.socket(fileno=descriptor)).serve()


def _hash_triton():
    """Have Triton hash its own files now: 0.3 s that every child's first kernel would pay. Private, and only a saving."""
    hash_files = getattr(sys.modules.get("triton.runtime.cache"), "triton_key", None)  # there in 3.6 to 3.9
    if hash_files is not None:
        hash_files()


class _Server:
    def __init__(self, control):
        self.control = control
        self.runs = {}  # pid of a child: its status pipe
        self.jobs = {}  # and the folder of its job
        self.parent = os.getppid()
        self.woken, wake = os.pipe()
        for end in (self.woken, wake):
            os.set_blocking(end, False)
        self.own = [control.fileno(), self.woken, wake]
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)

    def serve(self):
        while os.getppid() == self.parent:  # the socket stays open where a fork of the notebook holds it, so look
            ready, _, _ = select.select([self.control, self.woken], [], [], 2.0)
            if self.woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.woken, 4096)
            self.reap()
            if self.control in ready and not self.request():
                break
        for pid in self.runs:  # the notebook has gone: take its place in cleaning up
            _kill_group(pid)
            os.waitpid(pid, 0)
            shutil.rmtree(self.jobs[pid], ignore_errors=True)
        self.kill_orphans(())

    def request(self):
        """Handle one packet; False at the end of the conversation."""
        packet, descriptors, _, _ = socket.recv_fds(self.control, 65536, 3)
        if not packet:
            return False
        verb, _, argument = packet.decode().partition(" ")
        if verb == "run":
            self.start(argument, descriptors)
        elif int(argument) in self.runs:  # else it has ended by itself, and its number may be another's
            _kill_group(int(argument))
        return True

    def start(self, job, descriptors):
        stdout, stderr, status = descriptors
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.dup2(stdout, 1)
                os.dup2(stderr, 2)
                for descriptor in (*self.own, *self.runs.values(), *descriptors):
                    os.close(descriptor)
                from kit import sandbox_child

                sandbox_child.run(job)
            except BaseException:  # a fault of ours, not of the cell: let it be read
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(70)
        os.close(stdout)
        os.close(stderr)
        self.runs[pid], self.jobs[pid] = status, job
        self.tell(pid, f"pid {pid}\n")

    def reap(self):
        """Report the children that have ended, after killing what is left of their process groups."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            pid = ended.si_pid
            _kill_group(pid)  # before the number is free again
            _, status = os.waitpid(pid, 0)
            if pid in self.runs:
                if len(self.runs) == 1:
                    self.kill_orphans(self.runs)
                self.tell(pid, f"end {status}\n")
                os.close(self.runs.pop(pid))
                del self.jobs[pid]

    def kill_orphans(self, known):
        """Kill what left its process group: with the last run ended, no child of ours but the `known` may live."""
        with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as children:
            for pid in map(int, children.read().split()):
                if pid not in known:
                    os.kill(pid, signal.SIGKILL)

    def tell(self, pid, message):
        with contextlib.suppress(OSError):  # the reader may have given up
            os.write(self.runs[pid], message.encode())


def _kill_group(pid):
    for kill in (os.killpg, os.kill):  # the child may not have made its group yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)

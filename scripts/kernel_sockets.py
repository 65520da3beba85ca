"""Kernels that listen on files in a folder of their own, and on no port of the machine.

jupyter_client asks the system for a free TCP port, closes it and hands its number to the kernel, which binds it a second later. Two
processes that start kernels at once (pytest-xdist's workers do) can be given one number: the second kernel then dies with "Address already
in use". A socket file in a fresh folder cannot be taken by another process.
"""

from __future__ import annotations

import tempfile

from traitlets import HasTraits, default

LONGEST = 107  # bytes of a socket's path on Linux: sun_path of unix(7) holds 108, with the 0 at its end
_ROOM = 32  # for our folder's name, "/k-" and the number


def socket_folder():
    """A temporary folder whose sockets' paths are short enough: in the system's temporary folder, or in /tmp where that one is too deep."""
    usual = tempfile.gettempdir()
    fits = len(usual.encode()) + _ROOM <= LONGEST
    return tempfile.TemporaryDirectory(prefix="kit-k-", dir=usual if fits else "/tmp", ignore_cleanup_errors=True)


class SocketFiles(HasTraits):
    """Mix into a KernelManager of jupyter_client, before it in the bases: its kernels use the ipc transport."""

    @default("transport")
    def _ipc(self):
        return "ipc"

    @default("ip")
    def _path(self):
        self._sockets = socket_folder()  # gone with the kernel, see below, and with this manager at the latest
        return f"{self._sockets.name}/k"

    def cleanup_ipc_files(self):
        """Called by jupyter_client when the kernel is shut down for good."""
        super().cleanup_ipc_files()
        if hasattr(self, "_sockets"):
            self._sockets.cleanup()

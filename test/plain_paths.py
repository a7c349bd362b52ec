"""Paths without spaces and quotes for the RUN lines of lit."""

import hashlib
import os
import re
import tempfile

import lit.formats


def link_plain(path):
    """`path`, or a link to it, in the folder for temporary files, if a shell would part or change it."""
    if re.fullmatch(r"[^\s'\"\\$&;()<>|`*?\[\]#~{}%!]+", path):
        return path
    name = f"bngrad-{os.getuid()}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
    link = os.path.join(tempfile.gettempdir(), name)
    try:
        os.symlink(path, link)
    except FileExistsError:
        pass
    # Others may write there, too.
    if os.lstat(link).st_uid != os.getuid() or os.readlink(link) != path:
        raise RuntimeError(f"{link}: expected a link to {path}")
    return link


class PlainPaths(lit.formats.ShTest):
    """Tests whose files are named by these folders, which lit would resolve otherwise."""

    def __init__(self, source_root, exec_root):
        super().__init__(execute_external=False)
        self.source_root, self.exec_root = source_root, exec_root

    def execute(self, test, lit_config):
        test.suite.source_root, test.suite.exec_root = self.source_root, self.exec_root
        return super().execute(test, lit_config)

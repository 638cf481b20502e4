"""`codex-py sessions export`: a conversation as a file to read or to process."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.config.paths import codex_home
from codex_py.errors import CodexError
from codex_py.filesystem.own import open_emptied
from codex_py.frontends.admin.command import command_parser
from codex_py.frontends.admin.sessions import named_session
from codex_py.frontends.command_parser import OneOf
from codex_py.frontends.export.document import Shortener, read_document
from codex_py.frontends.export.forms import FORMS, writer_for
from codex_py.frontends.streams import print_out, tell


def run_export(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Write a conversation to a file or to standard output; the exit code."""
    parser = command_parser("session", "--last", "--full")
    parser.add_argument("--format", type=OneOf(*FORMS))
    parser.add_argument("-o", "--output")
    options = parser.parse_args(list(argv))
    path = None if options.output is None else Path(options.output)
    write = writer_for(path, options.format)
    home = codex_home(environment)
    document = read_document(named_session(home, options.session, last=options.last))
    shortener = Shortener(None) if options.full else Shortener()
    if path is None:
        done = print_out("".join(write(document, shortener)))
    else:
        done = 0
        try:
            with os.fdopen(open_emptied(path), "w", encoding="utf-8", newline="") as file:
                file.writelines(write(document, shortener))
        except OSError as error:
            raise CodexError(f"cannot write {str(path)!r}: {error.strerror}") from error
    if shortener.count and not done:
        tell(f"{shortener.count} long texts were shortened; --full keeps all of them.")
    return done

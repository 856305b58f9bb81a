"""One command in, one exit code out: 0, 2 for what the reader can mend, 130 for Ctrl-C."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from core.cli import arguments, commands
from core.cli.inspect import inspect
from core.cli.output import any_terminal
from core.faults import Fault

Command = Callable[[argparse.Namespace], None]
COMMANDS: dict[str, Command] = {
    "models": commands.models,
    "run": commands.run,
    "choose": commands.choose,
    "inspect": inspect,
}


def main(argv: Sequence[str]) -> int:
    any_terminal()
    try:
        typed = arguments.parser().parse_args(argv)
        COMMANDS[typed.command](typed)
        sys.stdout.flush()
    except Fault as fault:
        print(fault, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; the interpreter must not flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0

"""One command in, one exit code out: 0, 2 for what the reader can mend, 130 for Ctrl-C."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Callable, Sequence

from core.cli import arguments, commands, compare, lab
from core.cli.inspect import inspect
from core.cli.output import any_terminal, check_screen, say, silence
from core.faults import Fault

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing to a redirected stdout may end in."""
Command = Callable[[argparse.Namespace], None]
COMMANDS: dict[str, Command] = {
    "models": commands.models,
    "run": commands.run,
    "choose": commands.choose,
    "compare": compare.run,
    "inspect": inspect,
    "lab": lab.run,
}


def main(argv: Sequence[str]) -> int:
    any_terminal()
    try:
        check_screen()
        typed = arguments.parser().parse_args(argv)
        COMMANDS[typed.command](typed)
        sys.stdout.flush()
    except Fault as fault:
        say(fault)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        silence(sys.stdout)  # the reader (`| head`) has seen enough
    except OSError as error:
        if error.errno not in FULL:
            raise
        silence(sys.stdout)
        say(Fault("screen_unwritable", reason=error.strerror))
        return 2
    return 0

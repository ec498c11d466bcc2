"""Compares recorded requests and the emulator's answers with botocore's service models.

    python check.py FOLDER

prints, for each service, how many forms of requests and answers were validated, and what was refused.
A request that a model refuses is no defect where a test sent it in order to have it refused: then it is
signed as the user that the tests and commands are, by no role, and its service refused it, too.
"""
import collections
import re
import sys

from botocore.exceptions import UnknownServiceError

import asked
import answered
import record
import rules

# If many members of a list have the same problem, it is reported once.
NUMBER = re.compile(r"\[\d+\]")


def judge(exchange):
    """(request's problems, answer's problems, whether the refusal was meant) of an exchange."""
    status = exchange.answer["status"]
    was_refused = status is not None and 400 <= status < 500 and status != 429
    try:
        operation, parameters, found = asked.parse(exchange)
    except (asked.Unknown, UnknownServiceError) as error:
        return [str(error)], [], was_refused and exchange.session is None
    if operation.input_shape is not None:
        found += rules.problems(parameters, operation.input_shape)
    of_answer = answered.problems(exchange, operation) if exchange.is_emulator else []
    return found, of_answer, bool(found) and was_refused and exchange.session is None


def check(exchanges, say=print):
    """Judges all exchanges; the number of those that are refused."""
    counts = collections.defaultdict(collections.Counter)
    refusals = collections.defaultdict(list)
    for exchange in exchanges:
        of_request, of_answer, was_meant = judge(exchange)
        count = counts[exchange.service]
        count["requests"] += 1
        count["answers"] += exchange.is_emulator and exchange.answer["status"] is not None
        count["meant"] += was_meant
        for kind, found in (("request", [] if was_meant else of_request), ("answer", of_answer)):
            count["refused"] += bool(found)
            for problem in found:
                refusals[kind, exchange.service, NUMBER.sub("[…]", problem)].append(exchange)
    for (kind, service, problem), those in sorted(refusals.items()):
        say(f"refused: {len(those)} {kind}s of {service}: {problem}")
        say(f"    such as {those[0]}")
        say(f"    answered {those[0].answer['status']} {those[0].answer.get('body', '')[:400]}")
    row = "{:16} {:>9} {:>9} {:>9} {:>19}".format
    say(row("service", "requests", "answers", "refused", "refused on purpose"))
    total = sum(counts.values(), collections.Counter())
    for service, count in [*sorted(counts.items()), ("all", total)]:
        say(row(service, *(count[column] for column in ("requests", "answers", "refused", "meant"))))
    return total["refused"]


if __name__ == "__main__":
    found = record.read(sys.argv[1])
    sys.exit(1 if check(found) or not found else 0)

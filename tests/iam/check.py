"""Has an independent evaluator decide about every recorded call of a role, and compares.

    NODE_PATH=… python check.py FOLDER

A disagreement is a call that the evaluator denies and the local stack has carried out, or the reverse; and a verdict
of the simulation's own evaluator (simulation/src/permissions.rs) that is another.
"""
import collections
import json
import sys
from pathlib import Path

import calls
import evaluator
import roles
import simulated


def compare(found):
    """Each call with the requests that the evaluator denies of it, in a list for each template that may have decided."""
    simulations = [
        ((number, template), evaluator.simulation(roles.of_template(template), call.role, one, call.exchange.session.tags))
        for number, call in enumerate(found)
        for template in call.templates
        for one in call.wants
    ]
    decisions = evaluator.decide([simulation for _, simulation in simulations])
    denied = collections.defaultdict(list)
    for (key, simulation), is_allowed in zip(simulations, decisions, strict=True):
        if not is_allowed:
            denied[key].append(simulation["request"])
    return [(call, [denied[number, template] for template in call.templates]) for number, call in enumerate(found)]


def of_record(found, say=print):
    """The number of recorded calls on which the local stack and the evaluator disagree."""
    counts = collections.defaultdict(collections.Counter)
    for call, denied in compare(found):
        disagrees = all(bool(requests) != call.was_denied for requests in denied)
        counts[call.role].update(calls=1, decisions=len(call.wants), denied=call.was_denied, disagreements=disagrees)
        if disagrees:
            say(f"disagreement: {call.role}, answered {call.exchange.answer['status']}: {call.exchange}")
            for request in denied[-1]:
                say(f"    denied: {request['action']} on {request['resource']['resource']} with {request['contextVariables']}")
    row = "{:24} {:>7} {:>10} {:>8} {:>14}".format
    say(row("role", "calls", "decisions", "denied", "disagreements"))
    total = sum(counts.values(), collections.Counter())
    for role, count in [*sorted(counts.items()), ("all", total)]:
        say(row(role, *(count[column] for column in ("calls", "decisions", "denied", "disagreements"))))
    return total["disagreements"]


def of_simulation(verdicts, say=print):
    """The number of verdicts of the simulation's evaluator that are not this one's."""
    of = roles.of_template(roles.CONTROL_PLANE)
    simulations = [
        (number, evaluator.simulation(of, of.role_of(verdict["function"]), one))
        for number, verdict in enumerate(verdicts)
        for one in simulated.wants(verdict)
    ]
    decisions = evaluator.decide([simulation for _, simulation in simulations])
    allowed = [True] * len(verdicts)
    for (number, _), is_allowed in zip(simulations, decisions, strict=True):
        allowed[number] &= is_allowed
    disagreements = [verdict for verdict, is_allowed in zip(verdicts, allowed, strict=True) if verdict["allowed"] != is_allowed]
    for verdict in disagreements:
        say(f"disagreement: the simulation says of {verdict}, and the evaluator does not")
    say(f"{len(verdicts)} verdicts of the simulation, {sum(allowed)} of them allowed, {len(disagreements)} disagreements")
    return len(disagreements)


def main(folder):
    found = list(calls.of(calls.record.read(folder)))
    verdicts = json.loads((Path(folder) / "permissions.json").read_text())
    if not found or not verdicts:
        print("no calls were recorded")
        return 1
    return of_record(found) + of_simulation(verdicts)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)

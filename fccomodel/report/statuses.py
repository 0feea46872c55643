"""The verdict of a report as one word, for programs."""

from __future__ import annotations

from fccomodel.report.verdicts import grades

#: Violation, relative to its constraint's scale, up to which constraints count as met.
FEASIBLE = grades.FEASIBLE
#: Words by the grade that a verdict begins with.
WORDS = {
    "Solved to high accuracy": "solved",
    "Solved": "solved",
    "Solved roughly": "roughly",
    "Stationary to high accuracy": "stationary",
    "Stationary": "stationary",
    "Roughly stationary": "roughly_stationary",
    grades.OPEN: "loose_bound",
    grades.BEATEN: "not_best",
    grades.SADDLE: "saddle",
}


#: What a status means, in one sentence for a reader who is no optimiser.
SENTENCES = {
    "solved": "The answer is the best possible, up to tiny errors.",
    "roughly": "The answer is close to the best possible.",
    "stationary": "No small change improves the answer; a very different one may be better.",
    "roughly_stationary": "Small changes hardly improve the answer; a very different one may be better.",
    "loose_bound": "The answer looks good, but nothing proves how far it is from the best possible.",
    "not_best": "The answer is not the best: a better one was seen beside it.",
    "saddle": "The answer is not the best: there is a direction in which it improves. Try another start.",
    "stopped_feasible": "The search ended too early: all constraints hold, and better answers may exist.",
    "stopped_infeasible": "The search ended too early, and the answer does not meet all constraints.",
    "infeasible": "No answer meets all constraints.",
    "infeasible_nearby": "No answer that meets all constraints was found.",
    "unbounded": "There is no best answer: the objective can be improved without end.",
    "unattained": "There is no best answer: one can come ever closer to the best value without reaching it.",
}
#: Sentences of answers that are the best near them, where other ones may be better.
LOCALLY = {
    "solved": "The answer is the best among those near it; a very different one may be better.",
    "roughly": "The answer is close to the best among those near it; a very different one may be better.",
}


#: Statuses of a run whose problem has no solution. They are words themselves.
FAILURES = ("infeasible", "infeasible_nearby", "unbounded", "unattained")


def word(verdict: str, status: str, violation: float) -> str:
    """The verdict in one word.

    verdict     the report's text
    status      the status of the run
    violation   the largest one, relative to its constraint's scale

    The word is one of those in ``WORDS`` and ``FAILURES``, or ``stopped_feasible``, or
    ``stopped_infeasible``.
    """
    if status in FAILURES:
        return status
    for grade in sorted(WORDS, key=len, reverse=True):
        if verdict.startswith(grade):
            return WORDS[grade]
    if violation <= FEASIBLE:
        return "stopped_feasible"
    return "stopped_infeasible"


def sentence(verdict: str, word: str) -> str:
    """The sentence that says a verdict and its word to a reader who is no optimiser."""
    if "locally" in verdict.partition(":")[0]:
        return LOCALLY.get(word, SENTENCES[word])
    return SENTENCES[word]

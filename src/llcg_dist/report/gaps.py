"""Comparisons within a study: the best distributed group, and gaps to the reference and to plain averaging."""

import statistics

from llcg_dist.algorithms.presentation import PRESENTATIONS, Role
from llcg_dist.report.groups import Group, Study

SCORE = "test_score_at_best_val"


def role_of(method: str) -> Role:
    """The role of a method in a comparison; one that is not listed is a distributed method."""
    return PRESENTATIONS[method].role if method in PRESENTATIONS else Role.METHOD


def percent_on_test(group: Group) -> float | None:
    """The mean test score at the best validation score over the seeds, in %; None where no seed has one."""
    scores = [run.summary[SCORE] for run in group.runs if run.summary[SCORE] is not None]
    return 100 * statistics.fmean(scores) if scores else None


def best_distributed(study: Study) -> Group | None:
    """The finished group with the highest test score among the distributed methods."""
    distributed = [g for g in study.groups if g.finished and role_of(g.method) in (Role.METHOD, Role.BASELINE)]
    scored = [(score, group) for group in distributed if (score := percent_on_test(group)) is not None]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def compared_methods(study: Study) -> dict[Role, str]:
    """The reference and the baseline, by role, as far as the study has finished runs of them and of others."""
    methods = {role_of(group.method): group.method for group in study.groups if group.finished}
    wanted: dict[Role, str] = {role: methods[role] for role in (Role.REFERENCE, Role.BASELINE) if role in methods}
    return wanted if len({group.method for group in study.groups}) > 1 else {}


def gap_to(study: Study, group: Group, role: Role) -> float | None:
    """The group's mean test score less that of its counterpart of this role, in percentage points."""
    other = _counterpart(study, group, role)
    own, theirs = percent_on_test(group), percent_on_test(other) if other else None
    return None if own is None or theirs is None or not group.finished else own - theirs


def _counterpart(study: Study, group: Group, role: Role) -> Group | None:
    """The finished group of this role whose settings are most like the group's; None where two are equally near.

    Settings of the data and the model must be equal; those of the method may differ, and so may loopback and real
    processes, which have the same bits. The reference, which has no parts, may also differ in how the graph was cut and
    for how many machines.
    """
    free = ("algorithm.", "partition.", "cluster.") if role is Role.REFERENCE else ("algorithm.", "cluster.backend")
    candidates = [other for other in study.groups if role_of(other.method) is role and other.finished]
    if role_of(group.method) is role:
        return None

    def agrees(other: Group) -> bool:
        return all(other.keys[key] == value for key, value in group.keys.items() if not key.startswith(free))

    def agreeing(other: Group) -> int:
        return sum(other.keys[key] == value for key, value in group.keys.items())

    near = sorted(filter(agrees, candidates), key=agreeing, reverse=True)
    if not near or len(near) > 1 and agreeing(near[0]) == agreeing(near[1]):
        return None
    return near[0]

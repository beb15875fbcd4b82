"""Split the variance of rewards into noise within a task and differences between tasks."""

from proctor.stats.samples import Groups, group_means, mean_of, variance


def within_task_variance(groups: Groups) -> float | None:
    """E[v]: how much rollouts of one task differ, unbiased; needs a task with two rollouts."""
    repeated = [group for group in groups if len(group) > 1]
    return mean_of([variance(group) for group in repeated]) if repeated else None


def between_task_variance(groups: Groups) -> float | None:
    """Var(x): how much tasks differ once rollout noise is taken away; never below 0."""
    scored = list(filter(len, groups))
    within = within_task_variance(scored)
    if within is None or len(scored) < 2:
        return None
    noise = within * mean_of([1 / len(group) for group in scored])
    return max(0.0, variance(group_means(scored)) - noise)


def icc(groups: Groups) -> float | None:
    """The share of a rollout's variance that its task explains; undefined when nothing varies."""
    within, between = within_task_variance(groups), between_task_variance(groups)
    if within is None or between is None or within + between == 0:
        return None
    return between / (within + between)

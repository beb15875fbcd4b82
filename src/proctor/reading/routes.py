"""The reading routes: one table for every server that has a library of runs.

A server mounts each under /api/v1 and gives its handler the library of its caller; rights, cookies and web
frameworks are its own matter. `/runs` and the other single-run routes may be ones it has already.
"""

from __future__ import annotations

from proctor.api.comparisons import CompareQuery, ComparisonPage
from proctor.api.decisions import GateQuery, HistoryQuery, PlanQuery, RunHistory
from proctor.api.feed import FeedEvent
from proctor.api.labels import AgreementQuery, BlindRollout, LabellingQuery, LabellingQueue
from proctor.api.log import LogPage, LogQuery
from proctor.api.rollout_list import (
    Distribution,
    DistributionQuery,
    ExportQuery,
    FailureGroup,
    RolloutPage,
    RolloutQuery,
    RolloutViewQuery,
    TaskPage,
    TaskQuery,
)
from proctor.api.rollout_view import (
    DiffQuery,
    EventQuery,
    EventWindow,
    RolloutDiff,
    RolloutView,
    SearchHit,
    SearchQuery,
    SentCall,
)
from proctor.api.rows import RolloutRow
from proctor.api.run_list import RunFacets, RunListQuery, RunPage, SuiteInfo
from proctor.api.runs import RunInfo
from proctor.comparison.agreement import JudgeReport
from proctor.comparison.design import EvaluationDesign
from proctor.comparison.gate import GateResult
from proctor.reading import (
    compare_handler,
    decision_handlers,
    export_handler,
    label_handlers,
    rollout_handlers,
    run_handlers,
)
from proctor.reading.exchange import ANY_FILE, EVENT_STREAM, IMAGE, NDJSON, ReadingRoute
from proctor.report.summary import Summary
from proctor.trace import FileChange

RUN = "/runs/{run_id}"
ROLLOUT = RUN + "/rollouts/{key}/{number}"

OF_RUNS = (
    ReadingRoute(
        path="/runs",
        name="list_runs",
        summary="List runs",
        query=RunListQuery,
        answer=RunPage,
        handler=run_handlers.get_runs,
    ),
    ReadingRoute(
        path="/runs/facets",
        name="list_run_facets",
        summary="Count the values that filters of runs can be set to",
        query=RunListQuery,
        answer=RunFacets,
        handler=run_handlers.get_facets,
    ),
    ReadingRoute(
        path=RUN,
        name="get_run",
        summary="Describe a run",
        answer=RunInfo,
        handler=run_handlers.get_run,
    ),
    ReadingRoute(
        path=RUN + "/summary",
        name="get_run_summary",
        summary="Read the report of a run, so far if it is played",
        answer=Summary,
        handler=run_handlers.get_summary,
    ),
    ReadingRoute(
        path=RUN + "/log",
        name="read_run_log",
        summary="Read a run's log in either direction",
        query=LogQuery,
        answer=LogPage,
        handler=run_handlers.get_log,
    ),
    ReadingRoute(
        path="/suites",
        name="list_suites",
        summary="List sweeps",
        answer=list[SuiteInfo],
        handler=run_handlers.get_suites,
    ),
    ReadingRoute(
        path="/suites/{suite_id}",
        name="get_suite",
        summary="Read the runs of a sweep as a matrix",
        answer=SuiteInfo,
        handler=run_handlers.get_suite,
    ),
    ReadingRoute(
        path="/feed",
        name="follow_feed",
        summary="Follow what changes",
        answer=FeedEvent,
        media_type=EVENT_STREAM,
        handler=run_handlers.get_feed,
    ),
)

OF_ROLLOUTS = (
    ReadingRoute(
        path=RUN + "/rollouts",
        name="list_rollouts",
        summary="List a run's rollouts in brief",
        query=RolloutQuery,
        answer=RolloutPage,
        handler=rollout_handlers.get_rollouts,
    ),
    ReadingRoute(
        path=RUN + "/tasks",
        name="list_task_groups",
        summary="List a run's tasks with the results of each",
        query=TaskQuery,
        answer=TaskPage,
        handler=rollout_handlers.get_tasks,
    ),
    ReadingRoute(
        path=RUN + "/distribution",
        name="get_distribution",
        summary="Read how a quantity is distributed over a run's rollouts",
        query=DistributionQuery,
        answer=Distribution,
        handler=rollout_handlers.get_distribution,
    ),
    ReadingRoute(
        path=RUN + "/failures",
        name="list_failures",
        summary="List a run's failures by cause",
        answer=list[FailureGroup],
        handler=rollout_handlers.get_failures,
    ),
    ReadingRoute(
        path=RUN + "/search",
        name="search_run",
        summary="Search a run's rollouts for a text",
        query=SearchQuery,
        answer=SearchHit,
        media_type=NDJSON,
        handler=rollout_handlers.search_run,
        computes_stream=True,
    ),
    ReadingRoute(
        path=RUN + "/export",
        name="export_rollouts",
        summary="Download a run's rollouts as a table",
        query=ExportQuery,
        answer=bytes,
        media_type=ANY_FILE,
        handler=export_handler.export_run,
        writes_files=True,
    ),
    ReadingRoute(
        path=ROLLOUT,
        name="get_rollout",
        summary="Read the skeleton of a rollout, and its neighbors in a list",
        query=RolloutViewQuery,
        answer=RolloutView,
        handler=rollout_handlers.get_rollout,
    ),
    ReadingRoute(
        path=ROLLOUT + "/events",
        name="read_rollout_events",
        summary="Read the contents of a window of a rollout's events",
        query=EventQuery,
        answer=EventWindow,
        handler=rollout_handlers.get_events,
    ),
    ReadingRoute(
        path=ROLLOUT + "/calls/{index}",
        name="read_rollout_call",
        summary="Read a model call of a rollout as it was sent",
        answer=SentCall,
        handler=rollout_handlers.get_call,
    ),
    ReadingRoute(
        path=ROLLOUT + "/files/{index}",
        name="read_rollout_file",
        summary="Read the changes of a file",
        answer=FileChange,
        handler=rollout_handlers.get_file,
    ),
    ReadingRoute(
        path=ROLLOUT + "/images/{event}/{part}",
        name="read_rollout_image",
        summary="Read a picture of an event",
        answer=bytes,
        media_type=IMAGE,
        handler=rollout_handlers.get_image,
    ),
    ReadingRoute(
        path=ROLLOUT + "/raw",
        name="read_rollout_row",
        summary="Read a rollout's row as it is stored",
        answer=RolloutRow,
        handler=rollout_handlers.get_raw,
    ),
    ReadingRoute(
        path="/diff",
        name="diff_rollouts",
        summary="Compare two rollouts event by event",
        query=DiffQuery,
        answer=RolloutDiff,
        handler=rollout_handlers.get_diff,
    ),
)

OF_SEVERAL_RUNS = (
    ReadingRoute(
        path="/compare",
        name="compare_runs",
        summary="Compare runs on the tasks they share",
        query=CompareQuery,
        answer=ComparisonPage,
        handler=compare_handler.get_comparison,
    ),
)

OF_DECISIONS = (
    ReadingRoute(
        path=RUN + "/gate",
        name="check_gate",
        summary="Check a run against the rules of a policy",
        query=GateQuery,
        answer=GateResult,
        handler=decision_handlers.get_gate,
    ),
    ReadingRoute(
        path=RUN + "/plan",
        name="plan_evaluation",
        summary="Say how many tasks and rollouts you need, from what a run has shown",
        query=PlanQuery,
        answer=EvaluationDesign,
        handler=decision_handlers.get_plan,
    ),
    ReadingRoute(
        path=RUN + "/history",
        name="get_run_history",
        summary="List the runs of a run's recipe, the newest first",
        query=HistoryQuery,
        answer=RunHistory,
        handler=decision_handlers.get_history,
    ),
    ReadingRoute(
        path=RUN + "/labelling",
        name="list_unlabelled_rollouts",
        summary="List what is left to label, in a random order",
        query=LabellingQuery,
        answer=LabellingQueue,
        handler=label_handlers.get_labelling,
    ),
    ReadingRoute(
        path=ROLLOUT + "/blind",
        name="read_blind_rollout",
        summary="Read a rollout without its score, its model and its id",
        answer=BlindRollout,
        handler=label_handlers.get_blind_rollout,
    ),
    ReadingRoute(
        path=RUN + "/agreement",
        name="get_agreement",
        summary="How far a run's judge agrees with people, and the score corrected by their labels",
        query=AgreementQuery,
        answer=JudgeReport,
        handler=label_handlers.get_agreement,
    ),
)

READING_ROUTES: tuple[ReadingRoute, ...] = (*OF_RUNS, *OF_ROLLOUTS, *OF_SEVERAL_RUNS, *OF_DECISIONS)

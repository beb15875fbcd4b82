/** The heading of a run and its tabs, around the part that is shown. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { RenameForm } from "#/actions/RenameForm";
import { RenameButton, RunActions } from "#/actions/RunActions";
import { Tags } from "#/actions/Tags";
import { actionWords } from "#/actions/words";
import { ApiError } from "#/api/client";
import { runQuery } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { useComments } from "#/comments/useComments";
import { buttonClass } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { EmptyState } from "#/design/EmptyState";
import { LinkTabs, tabLinkActive, tabLinkClass } from "#/design/LinkTabs";
import { FullPage, PageHeader } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { EnvironmentLink } from "#/parts/EnvironmentLink";
import { Elapsed, When } from "#/parts/Figures";
import { formatCompact } from "#/parts/format";
import { nameRunKind } from "#/parts/RunKind";
import { StatusBadge } from "#/parts/Status";
import { words } from "#/words";
import styles from "./RunPage.module.css";
import { COMMENTS, FAILURES, RUN_TABS } from "./tabs";

const route = getRouteApi("/runs/$runId");

export function RunPage() {
  const { runId } = route.useParams();
  const refetchInterval = usePolling();
  const run = useQuery({ ...runQuery(runId), refetchInterval });
  const title = run.data ? run.data.name || run.data.environment : runId;
  useEffect(() => {
    document.title = `${title} · ${words.product}`;
  }, [title]);
  const comments = useComments({ runId });
  if (isGone(run.error)) return run.data ? <GoneRun /> : <LoadError error={run.error} onRetry={() => {}} />;
  if (run.error && !run.data) return <LoadError error={run.error} onRetry={() => void run.refetch()} />;
  if (!run.data) return <Skeleton lines={8} />;
  const { failed } = run.data.progress;
  const said = comments.data?.filter((comment) => comment.deleted_at === null).length ?? 0;
  return (
    <FullPage>
      <RunHeader run={run.data} title={title} />
      <LinkTabs label={words.run.parts}>
        {RUN_TABS.filter((tab) => tab.to !== COMMENTS || comments.data).map((tab) => (
          <Link
            key={tab.to}
            to={tab.to}
            params={{ runId }}
            className={tabLinkClass}
            activeOptions={{ exact: tab.exact, includeSearch: false }}
            activeProps={tabLinkActive}
          >
            {tab.label}
            {tab.to === FAILURES && failed > 0 && (
              <span className={styles.failed}>{formatCompact(failed)}</span>
            )}
            {tab.to === COMMENTS && said > 0 && <span className={styles.said}>{formatCompact(said)}</span>}
          </Link>
        ))}
      </LinkTabs>
      <div className={styles.part}>
        <Outlet />
      </div>
    </FullPage>
  );
}

const isGone = (error: Error | null): error is ApiError => error instanceof ApiError && error.status === 404;

/** Somebody has deleted the run, or no longer shares it, while it was read. */
function GoneRun() {
  return (
    <EmptyState
      icon="ban"
      title={actionWords.goneTitle}
      action={
        <Link to="/runs" className={buttonClass("plain")}>
          {actionWords.toRuns}
        </Link>
      }
    >
      <p role="alert">{actionWords.gone}</p>
    </EmptyState>
  );
}

function RunHeader({ run, title }: { run: RunInfo; title: string }) {
  const navigate = useNavigate();
  const [isRenaming, setRenaming] = useState(false);
  return (
    <PageHeader
      above={<Link to="/runs">{words.runs.title}</Link>}
      title={
        <>
          {isRenaming ? <RenameForm run={run} onClose={() => setRenaming(false)} /> : title}
          <StatusBadge status={run.status} />
        </>
      }
      below={
        <>
          <EnvironmentLink environment={run.environment} version={run.version} />
          <span>{run.model}</span>
          {run.agent && <span>{run.agent}</span>}
          <span>{nameRunKind(run)}</span>
          {run.owner && <span>{run.team ? `${run.owner} · ${run.team}` : run.owner}</span>}
          <When at={run.created_at} />
          {run.started_at !== null && <Elapsed from={run.started_at} to={run.ended_at} />}
          <code className={styles.id}>{run.id}</code>
          <Tags run={run} />
        </>
      }
      actions={
        <>
          {!isRenaming && <RenameButton run={run} onClick={() => setRenaming(true)} />}
          <RunActions run={run} onDeleted={() => void navigate({ to: "/runs" })} />
          <CopyButton text={() => location.href} label={words.copyLink} />
        </>
      }
    />
  );
}

/** The heading of a run and its tabs, around the part that is shown. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet } from "@tanstack/react-router";
import { useEffect } from "react";
import { runQuery } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { CopyButton } from "#/design/CopyButton";
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
import { FAILURES, RUN_TABS } from "./tabs";

const route = getRouteApi("/runs/$runId");

export function RunPage() {
  const { runId } = route.useParams();
  const refetchInterval = usePolling();
  const run = useQuery({ ...runQuery(runId), refetchInterval });
  const title = run.data ? run.data.name || run.data.environment : runId;
  useEffect(() => {
    document.title = `${title} · ${words.product}`;
  }, [title]);
  if (run.error && !run.data) return <LoadError error={run.error} onRetry={() => void run.refetch()} />;
  if (!run.data) return <Skeleton lines={8} />;
  const { failed } = run.data.progress;
  return (
    <FullPage>
      <RunHeader run={run.data} title={title} />
      <LinkTabs label={words.run.parts}>
        {RUN_TABS.map((tab) => (
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
          </Link>
        ))}
      </LinkTabs>
      <div className={styles.part}>
        <Outlet />
      </div>
    </FullPage>
  );
}

function RunHeader({ run, title }: { run: RunInfo; title: string }) {
  return (
    <PageHeader
      above={
        <Link to="/runs" className={styles.back}>
          {words.runs.title}
        </Link>
      }
      title={
        <>
          {title}
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
        </>
      }
      actions={<CopyButton text={() => location.href} label={words.copyLink} />}
    />
  );
}

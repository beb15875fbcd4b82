/** Why rollouts of a run failed, cause by cause: what happened, how often, where, and what to do next. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useRef } from "react";
import { isActive, runQuery, summaryQuery } from "#/api/runs";
import { failuresQuery } from "#/api/samples";
import type { FailureGroup, RunInfo, Summary } from "#/api/types";
import { usePolling } from "#/app/feed";
import { useKeys } from "#/app/keys";
import { CodeBlock } from "#/design/CodeBlock";
import { EmptyState } from "#/design/EmptyState";
import { PageBody } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import { words } from "#/words";
import { CauseNotice } from "../CauseNotice";
import { buildCommand, quoteWord } from "../settings";
import { FailureCard } from "./FailureCard";
import styles from "./failures.module.css";

const route = getRouteApi("/runs/$runId/failures");
const text = words.run.failures;

export function Failures() {
  const { runId } = route.useParams();
  const run = useQuery(runQuery(runId));
  const polling = usePolling();
  const isLive = run.data !== undefined && isActive(run.data.status);
  const failures = useQuery({ ...failuresQuery(runId), refetchInterval: isLive && polling });
  const summary = useQuery(summaryQuery(runId));
  return (
    <Loaded query={run} lines={8}>
      {(info) => (
        <PageBody>
          <CauseNotice run={info} />
          <Loaded query={failures} lines={8}>
            {(groups) =>
              groups.length === 0 ? (
                <NoFailures run={info} />
              ) : (
                <FailureList run={info} groups={groups} summary={summary.data} />
              )
            }
          </Loaded>
        </PageBody>
      )}
    </Loaded>
  );
}

function NoFailures({ run }: { run: RunInfo }) {
  if (run.cause) return null;
  return (
    <EmptyState icon="checkCircle" title={text.none}>
      <p>{isActive(run.status) ? text.noneSoFar : text.noneNote}</p>
    </EmptyState>
  );
}

type ListProps = { run: RunInfo; groups: readonly FailureGroup[]; summary: Summary | undefined };

function FailureList({ run, groups, summary }: ListProps) {
  const list = useRef<HTMLOListElement>(null);
  const move = (step: number) => {
    const cards = [...(list.current?.querySelectorAll<HTMLElement>("[data-failure]") ?? [])];
    const at = cards.findIndex((card) => card.contains(document.activeElement));
    const next = cards[Math.min(cards.length - 1, Math.max(0, at + step))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useKeys([
    { keys: "n", label: text.next, run: () => move(1) },
    { keys: "N", label: text.previous, run: () => move(-1) },
  ]);
  const failed = groups.reduce((sum, { count }) => sum + count, 0);
  return (
    <>
      <p className={styles.summary}>{text.summary(failed, groups.length)}</p>
      <ol className={styles.list} ref={list}>
        {groups.map((group, index) => (
          <li key={`${group.outcome} ${group.kind} ${group.phase} ${group.location}`}>
            <FailureCard run={run} group={group} isFirst={index === 0} />
          </li>
        ))}
      </ol>
      {!isActive(run.status) && (
        <section className={styles.resume} aria-label={words.run.nextStep}>
          <p>{text.kept(summary?.scored ?? run.progress.scored, run.kind === "hosted")}</p>
          <CodeBlock text={buildResume(run)} label={text.resume} />
        </section>
      )}
    </>
  );
}

const buildResume = (run: RunInfo): string =>
  run.kind === "hosted" ? `proctor eval resume ${quoteWord(run.id)}` : `${buildCommand(run)} \\\n  --resume`;

/** Failures that have one cause. */
import { Link } from "@tanstack/react-router";
import { useId } from "react";
import type { FailureGroup, RunInfo } from "#/api/types";
import { showControls } from "#/parts/ansiText";
import { OutcomeBadge } from "#/parts/Outcome";
import { words } from "#/words";
import { RolloutLink } from "../RolloutLink";
import { readSampleSearch } from "../samples/search";
import styles from "./failures.module.css";
import { LogExcerpt } from "./LogExcerpt";

const text = words.run.failures;

type Props = { run: RunInfo; group: FailureGroup; isFirst: boolean };

export function FailureCard({ run, group, isFirst }: Props) {
  const id = useId();
  const filter = { outcome: group.outcome, error_kind: group.kind || undefined };
  return (
    <article className={styles.card} aria-labelledby={id} tabIndex={-1} data-failure>
      <header className={styles.head}>
        <h2 id={id} className={styles.kind}>
          {group.kind || text.unknown}
        </h2>
        <OutcomeBadge outcome={group.outcome} />
        <span className={styles.count}>{text.count(group.count)}</span>
        {group.phase && <span className={styles.phase}>{text.during(group.phase)}</span>}
      </header>
      <p className={styles.message}>{showControls(group.message)}</p>
      {group.location !== "" && (
        <p>
          <span className={styles.label}>{text.at}</span> <code>{group.location}</code>
        </p>
      )}
      {group.next_step && (
        <p>
          <strong>{text.nextStep}</strong> {group.next_step}
        </p>
      )}
      <div className={styles.examples}>
        <span className={styles.label}>{text.examples}</span>
        {group.examples.map((entry) => (
          <RolloutLink
            key={`${entry.key}/${entry.number}`}
            runId={run.id}
            entry={entry}
            search={readSampleSearch(filter)}
          >
            {text.rollout(String(entry.task), entry.number)}
          </RolloutLink>
        ))}
        <Link
          to="/runs/$runId/samples"
          params={{ runId: run.id }}
          search={readSampleSearch(filter)}
          className={styles.all}
        >
          {text.all(group.count)}
        </Link>
      </div>
      {group.log_at !== null && <LogExcerpt runId={run.id} at={group.log_at} isOpen={isFirst} />}
    </article>
  );
}

/** A few runs, one line each. */
import { Link } from "@tanstack/react-router";
import type { Cause, RunInfo } from "#/api/types";
import { Money, When } from "#/parts/Figures";
import { ProgressBar } from "#/parts/ProgressBar";
import { findDomains, Score } from "#/parts/Score";
import { StatusMark } from "#/parts/Status";
import { readCause } from "#/words";
import { RunDuration } from "../runs/columns";
import styles from "./RunLines.module.css";

export function RunLines({ runs, hasCause }: { runs: readonly RunInfo[]; hasCause: boolean }) {
  const domains = findDomains(runs);
  return (
    <table className={styles.table}>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <td className={styles.status}>
              <StatusMark status={run.status} />
            </td>
            <td className={styles.name}>
              <Link to="/runs/$runId" params={{ runId: run.id }} className={styles.link}>
                {run.name || run.environment}
              </Link>
              <span className={styles.model}>{run.model}</span>
            </td>
            {hasCause ? (
              <td className={styles.cause} title={run.cause?.message}>
                {run.cause && describeCause(run.cause)}
              </td>
            ) : (
              <>
                <td className={styles.score}>
                  <Score score={run.score} domain={domains.get(run.environment)} />
                </td>
                <td className={styles.progress}>
                  <ProgressBar progress={run.progress} status={run.status} hasUnit />
                </td>
                <td className={styles.extra}>
                  <Money usd={run.cost_usd} />
                </td>
                <td className={styles.extra}>
                  <RunDuration run={run} />
                </td>
              </>
            )}
            <td className={styles.when}>
              <When at={run.ended_at ?? run.created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function describeCause(cause: Cause): string {
  const { title, message } = readCause(cause);
  return `${title}: ${message}`;
}

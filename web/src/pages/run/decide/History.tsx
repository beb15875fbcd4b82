/** The runs of this run's recipe, newest first, each interval drawn on one scale. */
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { historyQuery } from "#/api/decisions";
import type { RunHistory, RunInfo } from "#/api/types";
import { Section } from "#/design/Section";
import { EnvironmentLink } from "#/parts/EnvironmentLink";
import { When } from "#/parts/Figures";
import { formatPercent, formatRange, formatScore } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { findDomain, IntervalBar } from "#/parts/Score";
import { StatusMark } from "#/parts/Status";
import { nameVersion } from "../../evaluations/history";
import styles from "./decide.module.css";
import { decideWords } from "./words";

const text = decideWords.history;
const SHOWN_DIGITS = 12;
const ANCHOR = "history";

export function History({ run }: { run: RunInfo }) {
  const history = useQuery(historyQuery(run.id));
  const data = history.data;
  const note = data && (data.by === "recipe" ? text.byRecipe : text.byEnvironment);
  const isCut = data && data.total > data.items.length;
  const { hash } = useLocation();
  const place = useRef<HTMLDivElement>(null);
  const isLoaded = data !== undefined;
  useEffect(() => {
    if (isLoaded && hash === ANCHOR) place.current?.scrollIntoView();
  }, [isLoaded, hash]);
  return (
    <div id={ANCHOR} ref={place} className={styles.anchor}>
      <Section
        title={text.title}
        note={isCut ? `${note}, ${text.last(data.items.length, data.total)}` : note}
        actions={<EnvironmentLink environment={run.environment} />}
      >
        <Loaded query={history} lines={4}>
          {(found) => <Runs found={found} own={run.id} />}
        </Loaded>
      </Section>
    </div>
  );
}

function Runs({ found, own }: { found: RunHistory; own: string }) {
  const domain = findDomain(found.items.map((run) => run.score));
  const which = found.by === "recipe" ? text.commit : text.version;
  return (
    <div className={styles.scroll}>
      <table className={styles.history} aria-label={text.chart}>
        <thead>
          <tr>
            {[text.started, text.run, which, text.status, text.score].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            <th scope="col" className={styles.barColumn}>
              {formatScore(domain[0])} – {formatScore(domain[1])}
            </th>
            <th scope="col">{text.interval}</th>
            <th scope="col">{text.coverage}</th>
          </tr>
        </thead>
        <tbody>
          {found.items.map((run) => (
            <tr key={run.id} aria-current={run.id === own ? "true" : undefined}>
              <td>
                <When at={run.created_at} />
              </td>
              <td>
                {run.id === own ? (
                  <strong>{text.this}</strong>
                ) : (
                  <Link to="/runs/$runId" params={{ runId: run.id }}>
                    {run.name || run.id}
                  </Link>
                )}
              </td>
              <td>{describeOrigin(run)}</td>
              <td>
                <StatusMark status={run.status} />
              </td>
              <td>{formatScore(run.score?.mean)}</td>
              <td className={styles.barColumn}>
                {run.score?.mean != null && (
                  <IntervalBar wide mean={run.score.mean} interval={run.score.interval} domain={domain} />
                )}
              </td>
              <td>
                {run.score?.interval ? formatRange(run.score.interval.low, run.score.interval.high) : "–"}
              </td>
              <td>{formatPercent(run.score?.coverage)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const describeOrigin = (run: RunInfo): string =>
  run.origin ? `${run.origin.commit_sha.slice(0, SHOWN_DIGITS)} ${run.origin.branch}` : nameVersion(run);

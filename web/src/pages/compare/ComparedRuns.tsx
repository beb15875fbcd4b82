/** The runs that are compared: which of them is the base, what each scored, and how much of it was scored. */
import { Link } from "@tanstack/react-router";
import type { ComparisonPage, RunInfo } from "#/api/types";
import { IconButton } from "#/design/Button";
import { Icon } from "#/design/Icon";
import { Section } from "#/design/Section";
import { EnvironmentLink } from "#/parts/EnvironmentLink";
import { When } from "#/parts/Figures";
import { formatCount, formatPercent, formatRange } from "#/parts/format";
import { findDomain, Score } from "#/parts/Score";
import { StatusMark } from "#/parts/Status";
import { words } from "#/words";
import styles from "./ComparedRuns.module.css";
import type { UpdateSearch } from "./ComparePage";

const text = words.compare;
const columns = words.runs.columns;

type Props = {
  page: ComparisonPage;
  /** As chosen; the comparison with it may still be under way. */
  base: string;
  nameOf: (id: string) => string;
  update: UpdateSearch;
  onBase: (id: string) => void;
};

export function ComparedRuns({ page, base, nameOf, update, onBase }: Props) {
  const domain = findDomain(page.runs.map((run) => run.score));
  const remove = (id: string) => {
    const left = page.runs.map((run) => run.id).filter((each) => each !== id);
    update({ runs: left.join(","), ...(id === base ? { base: undefined } : {}) });
  };
  return (
    <Section title={text.runs} note={text.baseHint} flush>
      <table className={styles.table}>
        <thead>
          <tr>
            {[
              text.base,
              columns.name,
              columns.status,
              columns.model,
              columns.score,
              words.charts.interval,
              columns.coverage,
              columns.created,
              "",
            ].map((title, index) => (
              <th key={index} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {page.runs.map((run) => (
            <RunRow
              key={run.id}
              run={run}
              name={nameOf(run.id)}
              isBase={run.id === base}
              domain={domain}
              onBase={() => onBase(run.id)}
              onRemove={page.runs.length > 2 ? () => remove(run.id) : undefined}
            />
          ))}
        </tbody>
      </table>
    </Section>
  );
}

type RowProps = {
  run: RunInfo;
  name: string;
  isBase: boolean;
  domain: readonly [number, number];
  onBase: () => void;
  onRemove: (() => void) | undefined;
};

function RunRow({ run, name, isBase, domain, onBase, onRemove }: RowProps) {
  const interval = run.score?.interval;
  return (
    <tr>
      <td>
        <input
          type="radio"
          name="base"
          aria-label={text.makeBase(name)}
          checked={isBase}
          onChange={onBase}
          className={styles.radio}
        />
      </td>
      <td className={styles.name}>
        <Link to="/runs/$runId" params={{ runId: run.id }} className={styles.link}>
          {name}
        </Link>{" "}
        <EnvironmentLink environment={run.environment} version={run.version} className={styles.faint} />{" "}
        <code className={styles.faint}>{run.id}</code>
      </td>
      <td>
        <StatusMark status={run.status} />
      </td>
      <td>{run.model}</td>
      <td>
        <Score score={run.score ? { ...run.score, coverage: null } : null} domain={domain} />
      </td>
      <td className={styles.faint}>{interval ? formatRange(interval.low, interval.high) : "–"}</td>
      <td>
        <Coverage run={run} />
      </td>
      <td className={styles.faint}>
        <When at={run.created_at} />
      </td>
      <td>{onRemove && <IconButton icon="close" label={text.remove(name)} onClick={onRemove} />}</td>
    </tr>
  );
}

function Coverage({ run }: { run: RunInfo }) {
  const coverage = run.score?.coverage;
  const { scored, planned } = run.progress;
  return (
    <span
      className={coverage != null && coverage < 1 ? styles.partial : undefined}
      title={text.tasksOf(formatCount(scored), planned === null ? null : formatCount(planned))}
    >
      {coverage != null && coverage < 1 && <Icon name="half" size={12} />}
      {formatPercent(coverage)}
    </span>
  );
}

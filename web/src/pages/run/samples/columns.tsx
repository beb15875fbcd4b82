/** What each column of the list of rollouts shows. */
import type { RolloutEntry } from "#/api/types";
import { Duration, Money, Tokens, When } from "#/parts/Figures";
import { formatCount, formatScore } from "#/parts/format";
import { OutcomeMark } from "#/parts/Outcome";
import type { Column } from "#/parts/VirtualTable";
import { words } from "#/words";
import { RolloutLink } from "../RolloutLink";
import { type ColumnId, metricColumn } from "./columnIds";
import { Reward } from "./Reward";
import styles from "./samples.module.css";
import type { RolloutSort } from "./search";

export type SampleColumn = Column<RolloutEntry>;
type FixedColumn = SampleColumn & { id: ColumnId };
type Context = { runId: string; threshold: number; filters: object };

const text = words.run.samples.columns;

export const buildColumns = (context: Context, metrics: readonly string[]): SampleColumn[] => {
  const [outcome, task, reward, number, ...others] = buildFixedColumns(context);
  return [outcome, task, reward, number, ...metrics.map(buildMetricColumn), ...others].filter(
    (column) => column !== undefined,
  );
};

const buildMetricColumn = (name: string): SampleColumn => ({
  id: metricColumn(name),
  title: name,
  width: 5.5,
  sort: metricColumn(name),
  isNumber: true,
  cell: (entry) => formatScore(entry.metrics[name]),
});

function buildFixedColumns({ runId, threshold, filters }: Context): FixedColumn[] {
  return [
    {
      id: "outcome",
      title: text.outcome,
      width: 7.5,
      sort: "outcome",
      cell: (entry) => <OutcomeMark outcome={entry.outcome} />,
    },
    {
      id: "task",
      title: text.task,
      width: 4,
      grow: 1,
      sort: "task",
      cell: (entry) => (
        <RolloutLink runId={runId} entry={entry} search={filters} className={styles.task}>
          {String(entry.task)}
        </RolloutLink>
      ),
    },
    buildNumber("reward", 5, "reward", (entry) => <Reward reward={entry.reward} threshold={threshold} />),
    buildNumber("number", 3.5, "number", (entry) => entry.number),
    { id: "preview", title: text.preview, width: 14, grow: 4, cell: (entry) => <Preview entry={entry} /> },
    ...buildFigures(),
    {
      id: "error",
      title: text.error,
      width: 9,
      sort: "error",
      cell: (entry) => entry.error_kind || <None />,
    },
    { id: "stop", title: text.stop, width: 9, cell: (entry) => entry.stop_condition || <None /> },
    buildNumber("attempts", 4.5, undefined, (entry) => formatCount(entry.attempts)),
    { id: "env", title: text.env, width: 8, cell: (entry) => entry.env || <None /> },
    buildNumber("started", 6.5, "arrival", (entry) => <When at={entry.started_at || null} />),
  ];
}

const buildFigures = (): FixedColumn[] => [
  buildNumber("turns", 3.5, "turns", (entry) => entry.turns),
  buildNumber("tokens", 4.5, "tokens", (entry) => (
    <Tokens count={entry.input_tokens + entry.output_tokens} />
  )),
  buildNumber("seconds", 5, "seconds", (entry) => <Duration seconds={entry.seconds} />),
  buildNumber("cost", 5, "cost", (entry) => <Money usd={entry.cost_usd} />),
];

const buildNumber = (
  id: ColumnId,
  width: number,
  sort: RolloutSort | undefined,
  cell: SampleColumn["cell"],
): FixedColumn => ({ id, title: text[id], width, isNumber: true, cell, ...(sort ? { sort } : {}) });

const None = () => <span className={styles.none}>–</span>;

/** The model's last words, or why there are none. */
function Preview({ entry }: { entry: RolloutEntry }) {
  const failed = entry.error !== "" && entry.reward === null;
  const shown = failed ? entry.error : entry.preview;
  return (
    <span className={failed ? styles.error : styles.preview} title={shown}>
      {shown}
    </span>
  );
}

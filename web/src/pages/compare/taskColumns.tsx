/** What each column of the compared tasks shows; a column for every run. */
import type { ComparisonPage, TaskComparison, TaskSide } from "#/api/types";
import { Mark } from "#/design/Badge";
import { Icon } from "#/design/Icon";
import { formatScore } from "#/parts/format";
import { PageLink } from "#/parts/PageLink";
import type { Column } from "#/parts/VirtualTable";
import { words } from "#/words";
import styles from "./ComparedTasks.module.css";
import { formatDifference } from "./pairs";

const text = words.compare;

type TaskColumn = Column<TaskComparison, "difference" | "task">;
type Address = NonNullable<TaskSide["rollout"]>;

const writeAddress = ({ run, key, number }: Address) => [run, key, number].map(encodeURIComponent).join("/");

const hrefOfDiff = (a: Address, b: Address) => `/diff?a=${writeAddress(a)}&b=${writeAddress(b)}`;
const hrefOfRollout = ({ run, key, number }: Address) =>
  `/runs/${encodeURIComponent(run)}/t/${encodeURIComponent(key)}/${number}`;

/** The traces of the base beside those of one other run. */
function findDiffWith(row: TaskComparison, page: ComparisonPage, place: number): string | undefined {
  const a = row.sides[page.runs.findIndex((run) => run.id === page.base)]?.rollout;
  const b = row.sides[place]?.rollout;
  return a && b ? hrefOfDiff(a, b) : undefined;
}

/** The traces to look at first: the base beside the run that differs most; of a single run, its rollout. */
export function findDiff(row: TaskComparison, page: ComparisonPage): string | undefined {
  const base = page.runs.findIndex((run) => run.id === page.base);
  const own = row.sides[base]?.mean;
  const distance = (side: TaskSide) => (side.mean == null || own == null ? -1 : Math.abs(side.mean - own));
  const others = row.sides
    .map((side, place) => ({ side, place }))
    .filter(({ side, place }) => place !== base && side.rollout)
    .sort((a, b) => distance(b.side) - distance(a.side));
  const found = others[0] && findDiffWith(row, page, others[0].place);
  const single = row.sides.find((side) => side.rollout)?.rollout;
  return found ?? (single ? hrefOfRollout(single) : undefined);
}

export function buildTaskColumns(page: ComparisonPage, nameOf: (id: string) => string): TaskColumn[] {
  const base = page.runs.findIndex((run) => run.id === page.base);
  const order = [base, ...page.runs.keys()].filter((place, index, all) => all.indexOf(place) === index);
  const hasMembers = page.comparisons.some((each) => each.members.length > 0);
  return [
    { id: "flip", title: text.flip, width: 5, cell: (row) => <Flip row={row} base={base} /> },
    {
      id: "task",
      title: text.task,
      width: 4,
      grow: 2,
      sort: "task",
      cell: (row) => <TaskName row={row} />,
    },
    ...(hasMembers
      ? [{ id: "member", title: text.member, width: 7, cell: (row: TaskComparison) => row.member }]
      : []),
    ...order.map(
      (place): TaskColumn => ({
        id: page.runs[place]?.id ?? "",
        title: nameOf(page.runs[place]?.id ?? "") + (place === base ? ` (${text.base.toLowerCase()})` : ""),
        width: 5.5,
        grow: 1,
        isNumber: true,
        cell: (row) => <Side side={row.sides[place]} />,
      }),
    ),
    {
      id: "difference",
      title: text.difference,
      width: 5.5,
      isNumber: true,
      sort: "difference",
      cell: (row) => <Difference value={row.difference} />,
    },
    {
      id: "traces",
      title: text.traces,
      width: order.length > 2 ? 3 * (order.length - 1) + 4 : 6,
      cell: (row) => <Traces row={row} page={page} nameOf={nameOf} />,
    },
  ];
}

function Flip({ row, base }: { row: TaskComparison; base: number }) {
  if (!row.flipped) return <span className={styles.absent}>{text.same}</span>;
  const others = row.sides.filter((side, place) => place !== base && side.mean !== null);
  const own = row.sides[base]?.passed ?? false;
  const flipped = others.filter((side) => side.passed !== own);
  if (flipped.length < others.length && others.length > 1)
    return (
      <Mark tone="warn" icon="half">
        {text.mixed}
      </Mark>
    );
  return own ? (
    <Mark tone="bad" icon="arrowDown">
      {text.lost}
    </Mark>
  ) : (
    <Mark tone="good" icon="arrowUp">
      {text.won}
    </Mark>
  );
}

const TaskName = ({ row }: { row: TaskComparison }) => (
  <span className={styles.task}>
    <span className={styles.id} title={String(row.task)}>
      {String(row.task)}
    </span>
    {!row.same_content && (
      <span className={styles.other} title={text.contentDiffers}>
        <Icon name="alert" size={12} />
      </span>
    )}
  </span>
);

function Side({ side }: { side: TaskSide | undefined }) {
  if (side?.mean != null && side.rollout)
    return <PageLink href={hrefOfRollout(side.rollout)}>{formatScore(side.mean)}</PageLink>;
  if (side?.mean != null) return formatScore(side.mean);
  return <span className={styles.absent}>{side && side.unscored > 0 ? text.notScored : text.absent}</span>;
}

const Difference = ({ value }: { value: number | null }) => (
  <span className={value === null || value === 0 ? undefined : value > 0 ? styles.up : styles.down}>
    {formatDifference(value)}
  </span>
);

type TracesProps = { row: TaskComparison; page: ComparisonPage; nameOf: (id: string) => string };

function Traces({ row, page, nameOf }: TracesProps) {
  const links = page.runs.flatMap((run, place) => {
    const href = run.id === page.base ? undefined : findDiffWith(row, page, place);
    return href ? [{ href, name: nameOf(run.id) }] : [];
  });
  return (
    <span className={styles.links}>
      {links.map(({ href, name }) => (
        <PageLink key={href} href={href} label={text.openTracesOf(String(row.task), name)}>
          {links.length > 1 ? name : text.openTraces}
        </PageLink>
      ))}
    </span>
  );
}

/** The sweeps: what each varied, how far it is, and what its runs scored. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { suitesQuery } from "#/api/suites";
import type { SuiteInfo } from "#/api/types";
import { usePolling } from "#/app/feed";
import { Mark } from "#/design/Badge";
import { EmptyState } from "#/design/EmptyState";
import { FullPage, PageHeader } from "#/design/Section";
import { When } from "#/parts/Figures";
import { formatCount, formatScore } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { type Column, VirtualTable } from "#/parts/VirtualTable";
import { plural, words } from "#/words";
import { nameEnvironments, summarize } from "./matrix";
import styles from "./Suites.module.css";

const text = words.suites;

const COLUMNS: readonly Column<SuiteInfo>[] = [
  {
    id: "name",
    title: text.columns.name,
    width: 12,
    grow: 2,
    cell: (suite) => (
      <>
        <Link to="/suites/$suiteId" params={{ suiteId: suite.id }} className={styles.link}>
          {nameEnvironments(suite)}
        </Link>{" "}
        <span className={styles.faint}>{suite.id}</span>
      </>
    ),
  },
  {
    id: "axes",
    title: text.columns.axes,
    width: 12,
    grow: 2,
    cell: (suite) => <AxisNames suite={suite} />,
  },
  {
    id: "runs",
    title: text.columns.runs,
    width: 4,
    isNumber: true,
    cell: (suite) => formatCount(suite.cells.length),
  },
  { id: "state", title: text.columns.state, width: 8, cell: (suite) => <State suite={suite} /> },
  { id: "scores", title: text.columns.best, width: 8, cell: (suite) => <ScoreRange suite={suite} /> },
  {
    id: "created",
    title: text.columns.created,
    width: 6.5,
    isNumber: true,
    cell: (suite) => <When at={suite.created_at} />,
  },
];

export function SuitesPage() {
  useEffect(() => {
    document.title = `${text.title} · ${words.product}`;
  }, []);
  const navigate = useNavigate();
  const refetchInterval = usePolling();
  const suites = useQuery({ ...suitesQuery(), refetchInterval });
  return (
    <FullPage>
      <PageHeader
        title={text.title}
        below={<span>{suites.data && plural(suites.data.length, "suite")}</span>}
      />
      <Loaded query={suites} lines={8}>
        {(found) => (
          <VirtualTable
            label={text.title}
            columns={COLUMNS}
            count={found.length}
            rowAt={(index) => found[index]}
            keyOf={(suite) => suite.id}
            onOpen={(suite) => void navigate({ to: "/suites/$suiteId", params: { suiteId: suite.id } })}
            empty={
              <EmptyState icon="columns" title={text.none} commands={text.firstCommands}>
                <p>{text.noneHint}</p>
              </EmptyState>
            }
          />
        )}
      </Loaded>
    </FullPage>
  );
}

const AxisNames = ({ suite }: { suite: SuiteInfo }) => {
  const axes = Object.entries(suite.axes).map(([name, values]) => `${name} (${values.length})`);
  return <span title={axes.join(" × ")}>{axes.length > 0 ? axes.join(" × ") : text.noAxes}</span>;
};

function State({ suite }: { suite: SuiteInfo }) {
  const { active, failed } = summarize(suite);
  if (active > 0)
    return (
      <Mark tone="accent" icon="play" pulse>
        {text.open(active)}
      </Mark>
    );
  if (failed > 0)
    return (
      <Mark tone="bad" icon="xCircle">
        {text.failed(failed)}
      </Mark>
    );
  return (
    <Mark tone="good" icon="checkCircle">
      {text.allEnded}
    </Mark>
  );
}

function ScoreRange({ suite }: { suite: SuiteInfo }) {
  const { low, high } = summarize(suite);
  if (low === null || high === null) return <span className={styles.faint}>–</span>;
  return low === high ? formatScore(low) : text.range(formatScore(low), formatScore(high));
}

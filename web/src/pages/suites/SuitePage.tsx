/** One sweep as a matrix, live: the score of every combination with its interval. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { suiteQuery } from "#/api/suites";
import type { SuiteInfo } from "#/api/types";
import { usePolling } from "#/app/feed";
import { changeSearch } from "#/app/search";
import { buttonClass } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { Icon } from "#/design/Icon";
import { PageBody, PageHeader, Section } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { When } from "#/parts/Figures";
import { Loaded } from "#/parts/Loaded";
import { plural, words } from "#/words";
import { MOST_COMPARED } from "../compare/most";
import { Matrix } from "./Matrix";
import { type Axes, chooseAxes, nameEnvironments, summarize } from "./matrix";
import styles from "./Suites.module.css";

const route = getRouteApi("/suites/$suiteId");
const text = words.suites;

type AxisSearch = { rows?: string; columns?: string };

export function SuitePage() {
  const { suiteId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const refetchInterval = usePolling();
  const suite = useQuery({ ...suiteQuery(suiteId), refetchInterval });
  const title = suite.data ? nameEnvironments(suite.data) : text.one;
  useEffect(() => {
    document.title = `${title} · ${words.product}`;
  }, [title]);
  return (
    <Loaded query={suite} lines={8}>
      {(found) => {
        const axes = chooseAxes(found, search);
        return (
          <>
            <SuiteHeader suite={found} title={title} axes={axes} />
            <PageBody>
              <Section
                title={text.matrix}
                actions={
                  axes.others.length > 0 && (
                    <AxisChoice
                      suite={found}
                      axes={axes}
                      onChange={(change) =>
                        void navigate({
                          search: (before: AxisSearch) => changeSearch(before, change),
                          replace: true,
                        })
                      }
                    />
                  )
                }
                flush
              >
                <Matrix suite={found} axes={axes} />
              </Section>
            </PageBody>
          </>
        );
      }}
    </Loaded>
  );
}

function SuiteHeader({ suite, title, axes }: { suite: SuiteInfo; title: string; axes: Axes }) {
  const { active, failed } = summarize(suite);
  const ids = suite.cells.map((cell) => cell.run.id);
  return (
    <PageHeader
      above={<Link to="/suites">{text.title}</Link>}
      title={title}
      below={
        <>
          <span>{plural(suite.cells.length, "run")}</span>
          <span>{[axes.rows, axes.columns, ...axes.others].filter(Boolean).join(" × ")}</span>
          <span>{active > 0 ? text.open(active) : text.allEnded}</span>
          {failed > 0 && <span>{text.failed(failed)}</span>}
          <When at={suite.created_at} />
          <code className={styles.faint}>{suite.id}</code>
        </>
      }
      actions={
        <>
          {ids.length >= 2 && ids.length <= MOST_COMPARED && (
            <Link to="/compare" search={{ runs: ids.join(",") }} className={buttonClass("plain")}>
              <Icon name="compare" />
              {text.compareAll}
            </Link>
          )}
          <CopyButton text={() => location.href} label={words.copyLink} />
        </>
      }
    />
  );
}

type ChoiceProps = { suite: SuiteInfo; axes: Axes; onChange: (change: AxisSearch) => void };

function AxisChoice({ suite, axes, onChange }: ChoiceProps) {
  const options = Object.keys(suite.axes).map((value) => ({ value, label: value }));
  return (
    <>
      <span className={styles.axisName} aria-hidden="true">
        {text.rows}
      </span>
      <Segmented
        label={text.rows}
        options={options}
        value={axes.rows ?? ""}
        onChange={(rows) =>
          onChange({ rows, ...(rows === axes.columns ? { columns: axes.rows ?? "" } : {}) })
        }
      />
      <span className={styles.axisName} aria-hidden="true">
        {text.columnsAxis}
      </span>
      <Segmented
        label={text.columnsAxis}
        options={options}
        value={axes.columns ?? ""}
        onChange={(columns) =>
          onChange({ columns, ...(columns === axes.rows ? { rows: axes.columns ?? "" } : {}) })
        }
      />
    </>
  );
}

/** Runs compared on the tasks they share: a verdict first, then everything that it rests on. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { compareQuery } from "#/api/compare";
import type { ComparisonPage } from "#/api/types";
import { usePolling } from "#/app/feed";
import { useKeys } from "#/app/keys";
import { changeSearch, type SearchChange } from "#/app/search";
import { buttonClass } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { EmptyState } from "#/design/EmptyState";
import { Icon } from "#/design/Icon";
import { PageBody, PageHeader, Section } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import { plural, words } from "#/words";
import { ComparedRuns } from "./ComparedRuns";
import { ComparedTasks } from "./ComparedTasks";
import styles from "./ComparePage.module.css";
import { DifferenceBars } from "./DifferenceBars";
import { MarginField } from "./MarginField";
import { Measures } from "./Measures";
import { Scatter } from "./Scatter";
import { buildCompareQuery, type CompareSearch, nameRuns } from "./search";
import { VerdictCard } from "./VerdictCard";
import { WhatDiffers } from "./WhatDiffers";

const route = getRouteApi("/compare");
const text = words.compare;

export function ComparePage() {
  const search = route.useSearch();
  const query = buildCompareQuery(search);
  useEffect(() => {
    document.title = `${text.title} · ${words.product}`;
  }, []);
  if (query.run.length < 2) return <ChooseRuns />;
  return <ComparedPage search={search} />;
}

function ChooseRuns() {
  return (
    <>
      <PageHeader title={text.title} />
      <EmptyState
        icon="compare"
        title={text.chooseTitle}
        commands={text.commands}
        action={
          <Link to="/runs" className={buttonClass("primary")}>
            {text.chooseAction}
          </Link>
        }
      >
        <p>{text.choose}</p>
      </EmptyState>
    </>
  );
}

export type UpdateSearch = (change: SearchChange<CompareSearch>) => void;

function ComparedPage({ search }: { search: CompareSearch }) {
  const navigate = route.useNavigate();
  const update: UpdateSearch = (change) =>
    void navigate({ search: (before: CompareSearch) => changeSearch(before, change), replace: true });
  const refetchInterval = usePolling();
  const query = buildCompareQuery(search);
  const compared = useQuery({ ...compareQuery(query), refetchInterval });
  return (
    <>
      <PageHeader
        title={text.title}
        below={<span>{plural(query.run.length, "run")}</span>}
        actions={
          <>
            <Link to="/runs" className={buttonClass("quiet")}>
              <Icon name="plus" />
              {text.add}
            </Link>
            <CopyButton text={() => location.href} label={words.copyLink} />
          </>
        }
      />
      <PageBody>
        <Loaded query={compared} lines={10}>
          {(page) => <Results page={page} search={search} update={update} />}
        </Loaded>
      </PageBody>
    </>
  );
}

type Props = { page: ComparisonPage; search: CompareSearch; update: UpdateSearch };

function Results({ page, search, update }: Props) {
  const names = nameRuns(page.runs);
  const nameOf = (id: string) => names.get(id) ?? id;
  const chosen = page.runs.find((run) => run.id === search.base)?.id ?? page.runs[0]?.id ?? page.base;
  const setBase = (base: string) => update({ base: base === page.runs[0]?.id ? undefined : base });
  useKeys([
    { keys: "b", label: text.nextBase, run: () => setBase(findNext(page, chosen)) },
    {
      keys: "f",
      label: text.toggleFlips,
      run: () => update({ only: search.only === "flips" ? undefined : "flips" }),
    },
  ]);
  const others = page.runs.filter((run) => run.id !== page.base);
  const pairs = page.comparisons.flatMap((comparison, index) => {
    const run = others[index];
    return run ? [{ run: run.id, name: nameOf(run.id), comparison }] : [];
  });
  const measure = search.metric ?? text.reward;
  return (
    <>
      {pairs.map(({ run, name, comparison }) => (
        <VerdictCard key={run} comparison={comparison} name={name} base={nameOf(page.base)} />
      ))}
      <MarginField
        margin={search.margin}
        lines={pairs.map(({ name, comparison }) => ({ name, equivalence: comparison.equivalence }))}
        onChange={(margin) => update({ margin })}
      />
      <ComparedRuns page={page} base={chosen} nameOf={nameOf} update={update} onBase={setBase} />
      <div className={styles.columns}>
        <Section title={text.scatter} note={measure}>
          <Scatter points={page.scatter} base={nameOf(page.base)} nameOf={nameOf} measure={measure} />
        </Section>
        <div className={styles.column}>
          <Section title={text.differences}>
            <DifferenceBars pairs={pairs} />
          </Section>
          <WhatDiffers pairs={pairs} base={nameOf(page.base)} />
        </div>
      </div>
      <Measures
        pairs={pairs}
        metric={search.metric}
        listed={page.metrics}
        onMetric={(metric) => update({ metric })}
      />
      <ComparedTasks page={page} search={search} nameOf={nameOf} update={update} />
    </>
  );
}

function findNext(page: ComparisonPage, base: string): string {
  const at = page.runs.findIndex((run) => run.id === base);
  return page.runs[(at + 1) % page.runs.length]?.id ?? base;
}

/** How far the judge agrees with people, and the score that people would have given. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { agreementQuery } from "#/api/labels";
import { summaryQuery } from "#/api/runs";
import type { Interval, JudgeReport, RunInfo } from "#/api/types";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { NumberTable } from "#/parts/Chart";
import { formatCount, formatPercent, formatRange, formatScore } from "#/parts/format";
import { IntervalBars } from "#/parts/IntervalBars";
import { Loaded } from "#/parts/Loaded";
import styles from "./labels.module.css";
import { labelWords } from "./words";

const text = labelWords.agreement;

type Estimate = JudgeReport["people"][number]["kappa"];

export function Agreement({ run, hasLabels }: { run: RunInfo; hasLabels: boolean }) {
  const [metric, setMetric] = useState("");
  const summary = useQuery(summaryQuery(run.id));
  const report = useQuery({
    ...agreementQuery(run.id, metric ? { metric } : {}),
    enabled: hasLabels,
  });
  const metrics = Object.keys(summary.data?.metrics ?? {});
  return (
    <Section
      title={text.title}
      note={text.note}
      actions={
        hasLabels &&
        metrics.length > 0 && (
          <Select
            label={text.judge}
            hideLabel
            value={metric}
            onChange={setMetric}
            options={[
              { value: "", label: text.reward },
              ...metrics.map((name) => ({ value: name, label: name })),
            ]}
          />
        )
      }
    >
      {hasLabels ? (
        <Loaded query={report} lines={4}>
          {(data) => <Report report={data} />}
        </Loaded>
      ) : (
        <p className={styles.faint}>{text.none}</p>
      )}
    </Section>
  );
}

function Report({ report }: { report: JudgeReport }) {
  const rated = [...report.people, ...(report.everybody ? [report.everybody] : [])];
  const rows = rated.map((each) => [
    each === report.everybody ? text.everybody : each.person,
    formatCount(each.labels),
    formatScore(each.mean),
    formatPercent(each.kappa.observed),
    formatEstimate(each.kappa),
    formatEstimate(each.alpha),
    formatCount(each.only_judge_passes),
    formatCount(each.only_person_passes),
  ]);
  const head = [
    text.against,
    text.labels,
    text.mean,
    text.agree,
    text.kappa,
    text.alpha,
    text.onlyJudge,
    text.onlyPerson,
  ];
  const between = report.between_people;
  return (
    <div className={styles.report}>
      <NumberTable label={text.title} table={{ head, rows }} />
      {between && <p>{text.between(formatEstimate(between), between.n)}</p>}
      <Corrected report={report} />
    </div>
  );
}

function Corrected({ report }: { report: JudgeReport }) {
  const { corrected } = report;
  if (corrected.mean === null) return null;
  const lines = [
    { id: "judge", name: text.judgeSays, mean: corrected.judge_mean, interval: null },
    { id: "people", name: text.peopleSay(corrected.labelled), mean: corrected.people_mean, interval: null },
    { id: "corrected", name: text.corrected, mean: corrected.mean, interval: corrected.interval },
  ];
  return (
    <>
      <IntervalBars label={text.corrected} lines={lines} />
      <p className={styles.faint}>
        {text.counts(formatPercent(corrected.weight))}. {text.holds}
      </p>
    </>
  );
}

function formatEstimate(estimate: Estimate): string {
  if (estimate.value === null) return `– (${text.nothingVaries})`;
  return `${formatScore(estimate.value)} (${formatInterval(estimate.interval)})`;
}

const formatInterval = (interval: Interval | null): string =>
  interval ? formatRange(interval.low, interval.high) : text.tooFew;

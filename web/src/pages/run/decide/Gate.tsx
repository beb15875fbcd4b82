/** May this run pass? A policy, and the verdict on each of its rules. */
import { skipToken, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { fieldProblems } from "#/api/change";
import { gateQuery, rivalsQuery } from "#/api/decisions";
import type { GateResult, RunInfo } from "#/api/types";
import { Badge, type Tone } from "#/design/Badge";
import { Button } from "#/design/Button";
import type { IconName } from "#/design/Icon";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { Skeleton } from "#/design/Skeleton";
import { TextArea } from "#/design/TextArea";
import { NumberTable } from "#/parts/Chart";
import { formatScore, formatTime } from "#/parts/format";
import { Problem } from "#/parts/Problem";
import type { ChangeDecision } from "./Decide";
import styles from "./decide.module.css";
import { recallPolicy, rememberPolicy } from "./policyMemory";
import { type DecideSearch, LONGEST_POLICY } from "./search";
import { decideWords } from "./words";

const text = decideWords.gate;

export const GATE_LOOKS: Record<GateResult["outcome"], { tone: Tone; icon: IconName }> = {
  PASS: { tone: "good", icon: "checkCircle" },
  FAIL: { tone: "bad", icon: "xCircle" },
  INCONCLUSIVE: { tone: "warn", icon: "help" },
};

type Props = { run: RunInfo; search: DecideSearch; onChange: ChangeDecision };

export function Gate({ run, search, onChange }: Props) {
  const [policy, setPolicy] = useState(search.policy ?? recallPolicy(run.environment) ?? text.example);
  const [known, setKnown] = useState(search.policy);
  if (known !== search.policy) {
    setKnown(search.policy);
    if (search.policy !== undefined) setPolicy(search.policy);
  }
  const asked = search.policy && {
    policy: search.policy,
    ...(search.baseline ? { baseline: search.baseline } : {}),
  };
  const query = asked ? gateQuery(run.id, asked) : null;
  const result = useQuery(query ?? { queryKey: ["gate", "none"], queryFn: skipToken });
  const isLong = policy.length > LONGEST_POLICY;
  const check = () => {
    if (isLong || policy.trim() === "") return;
    rememberPolicy(run.environment, policy);
    if (policy === search.policy) void result.refetch();
    else onChange({ policy });
  };
  const refused = fieldProblems(result.error).policy;
  return (
    <Section title={text.title} note={text.note}>
      <form
        className={styles.gate}
        onSubmit={(event) => {
          event.preventDefault();
          check();
        }}
      >
        <TextArea
          code
          label={text.policy}
          hint={text.policyHint}
          rows={7}
          value={policy}
          onChange={(event) => setPolicy(event.target.value)}
          error={isLong ? text.tooLong(LONGEST_POLICY) : refused}
          className={styles.policy ?? ""}
        />
        <div className={styles.side}>
          <BaselineField run={run} value={search.baseline} onChange={(baseline) => onChange({ baseline })} />
          <div className={styles.buttons}>
            <PolicyFile onRead={setPolicy} />
            <Button type="submit" look="primary">
              {text.check}
            </Button>
          </div>
        </div>
      </form>
      {asked && (
        <div aria-live="polite">
          <Problem error={result.error} fields={["policy"]} />
          {result.data && <Verdict result={result.data} onPlan={onChange} />}
          {result.isPending && !result.error && <Skeleton lines={3} />}
        </div>
      )}
    </Section>
  );
}

function Verdict({ result, onPlan }: { result: GateResult; onPlan: ChangeDecision }) {
  const rows = result.rules.map((rule) => [
    <code key="rule">{rule.rule}</code>,
    <Badge key="outcome" {...GATE_LOOKS[rule.outcome]}>
      {rule.outcome}
    </Badge>,
    <span key="text" className={styles.found}>
      {rule.text}
      {rule.goal && rule.goal.kind !== "rollouts" && (
        <Button
          small
          look="quiet"
          icon="arrowDown"
          onClick={() => {
            const { kind, amount } = rule.goal ?? {};
            if (kind === "halfwidth" || kind === "difference")
              onPlan({ goal: kind, amount: shorten(amount) });
          }}
        >
          {text.plan}
        </Button>
      )}
    </span>,
  ]);
  return (
    <section className={styles.verdict} aria-label={text.result}>
      <p className={styles.outcome}>
        <Badge {...GATE_LOOKS[result.outcome]}>{result.outcome}</Badge>
        <span>{text.meaning[result.outcome]}</span>
        {result.baseline[0] && <span className={styles.faint}>{text.against(result.baseline[0])}</span>}
      </p>
      <NumberTable label={text.result} table={{ head: [text.rule, text.outcome, text.found], rows }} />
    </section>
  );
}

/** To three digits, downwards: a plan for a little less decides as well. */
function shorten(amount: number | undefined): number | undefined {
  if (amount === undefined || amount <= 0) return undefined;
  const unit = 10 ** (Math.floor(Math.log10(amount)) - 2);
  return Number((Math.floor(amount / unit) * unit).toPrecision(3));
}

function PolicyFile({ onRead }: { onRead: (text: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        accept=".toml,text/plain"
        hidden
        aria-label={text.uploadLabel}
        onChange={async (event) => {
          const file = event.target.files?.[0];
          if (file) onRead(await file.slice(0, 4 * LONGEST_POLICY).text());
          event.target.value = "";
        }}
      />
      <Button onClick={() => input.current?.click()}>{text.upload}</Button>
    </>
  );
}

type BaselineProps = {
  run: RunInfo;
  value: string | undefined;
  onChange: (run: string | undefined) => void;
};

function BaselineField({ run, value, onChange }: BaselineProps) {
  const rivals = useQuery(rivalsQuery(run));
  const others = (rivals.data ?? []).filter((each) => each.id !== run.id);
  const isListed = !value || others.some((each) => each.id === value);
  return (
    <Select
      label={decideWords.baseline}
      hint={decideWords.baselineHint}
      value={value ?? ""}
      onChange={(chosen) => onChange(chosen || undefined)}
      options={[
        { value: "", label: decideWords.noBaseline },
        ...(isListed ? [] : [{ value: value ?? "", label: value ?? "" }]),
        ...others.map((each) => ({ value: each.id, label: nameBaseline(each) })),
      ]}
    />
  );
}

const nameBaseline = (run: RunInfo): string =>
  [run.name || run.model, formatScore(run.score?.mean), formatTime(run.created_at), run.id].join(" · ");

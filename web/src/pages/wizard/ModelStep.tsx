/** Which model plays: its price, its context, and what it did here last; and for tasksets, which agent. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { modelListQuery } from "#/api/startRun";
import type { ModelInfo } from "#/api/types";
import { Badge } from "#/design/Badge";
import { classes } from "#/design/classes";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { Skeleton } from "#/design/Skeleton";
import { TextField } from "#/design/TextField";
import { formatCompact, formatMoney } from "#/parts/format";
import { formatHalfwidth } from "./figures";
import type { Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const say = text.model;

export function ModelStep({ wizard }: { wizard: Wizard }) {
  return (
    <>
      <ModelList wizard={wizard} />
      <AgentField wizard={wizard} />
    </>
  );
}

function ModelList({ wizard }: { wizard: Wizard }) {
  const [search, setSearch] = useState("");
  const models = useQuery(modelListQuery(wizard.environment));
  const listed = models.data?.items ?? [];
  const fallback = listed.find((model) => model.is_default)?.id;
  const chosen = wizard.choices.model ?? fallback;
  const isListed = listed.some((model) => model.id === chosen);
  const all: ModelInfo[] = chosen && !isListed && models.data ? [unlisted(chosen), ...listed] : listed;
  const words = search.toLowerCase().split(/\s+/);
  const shown = all.filter((model) =>
    words.every((word) => `${model.id} ${model.provider}`.toLowerCase().includes(word)),
  );
  const problem = wizard.server.problems.model;
  return (
    <Section title={say.offered}>
      <div className={styles.stack}>
        <TextField
          label={say.search}
          hideLabel
          icon="search"
          placeholder={say.search}
          type="search"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") event.preventDefault(); // not yet the next step
          }}
        />
        {problem && (
          <p id="model-problem" role="alert" className={styles.error}>
            {problem}
          </p>
        )}
        {models.isPending ? (
          <Skeleton lines={4} />
        ) : (
          <fieldset className={styles.models} aria-describedby={problem ? "model-problem" : undefined}>
            <legend className={styles.hidden}>{say.label}</legend>
            {shown.map((model) => (
              <ModelLine
                key={model.id}
                model={model}
                isChosen={model.id === chosen}
                onChoose={() => wizard.change({ model: model.id })}
              />
            ))}
            {shown.length === 0 && <p>{all.length > 0 ? say.none : say.noModels}</p>}
          </fieldset>
        )}
      </div>
    </Section>
  );
}

const unlisted = (id: string): ModelInfo => ({
  id,
  provider: say.unlisted,
  input_usd_per_million: null,
  output_usd_per_million: null,
  cached_usd_per_million: null,
  context_tokens: null,
  is_default: false,
  last: null,
});

function ModelLine(props: { model: ModelInfo; isChosen: boolean; onChoose: () => void }) {
  const { model, isChosen } = props;
  return (
    <label className={classes(styles.model, isChosen && styles.chosen)}>
      <input type="radio" name="model" value={model.id} checked={isChosen} onChange={props.onChoose} />
      <span className={styles.modelName}>
        {model.id} {model.is_default && <Badge>{say.isDefault}</Badge>}
      </span>
      <span className={styles.modelFacts}>
        <span>{model.provider}</span>
        <span>{describePrice(model)}</span>
        {model.context_tokens !== null && <span>{say.context(formatCompact(model.context_tokens))}</span>}
        {model.last && <span className={styles.last}>{describeLast(model.last)}</span>}
      </span>
    </label>
  );
}

export function describePrice(model: ModelInfo): string {
  const { input_usd_per_million: input, output_usd_per_million: output } = model;
  if (input === null || output === null) return say.noPrice;
  return input === 0 && output === 0 ? say.free : say.price(formatMoney(input), formatMoney(output));
}

export function describeLast(last: NonNullable<ModelInfo["last"]>): string {
  const parts = [formatHalfwidth(last.score?.mean, last.score?.interval)];
  if (last.usd_per_rollout !== null) parts.push(say.perRollout(formatMoney(last.usd_per_rollout)));
  return `${say.last} ${parts.join(", ")}`;
}

function AgentField({ wizard }: { wizard: Wizard }) {
  const check = wizard.server.check;
  const agent = wizard.choices.agent ?? "";
  if (!check?.takes_agent && !agent) return null;
  const names = [...new Set([...(check?.agents ?? []), ...(agent ? [agent] : [])])];
  return (
    <Section title={say.agent}>
      <Select
        label={say.agent}
        hideLabel
        value={agent}
        hint={say.agentHint}
        error={wizard.server.problems["settings.agent"]}
        options={[
          { value: "", label: say.agentDefault },
          ...names.map((name) => ({ value: name, label: name })),
        ]}
        onChange={(value) => wizard.change({ agent: value })}
      />
    </Section>
  );
}

/** How much to play, with which arguments, sampling, limits, rights and secrets. */
import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "#/api/session";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { Switch } from "#/design/Switch";
import { TextArea } from "#/design/TextArea";
import { formatCount } from "#/parts/format";
import { ArgumentsField } from "./ArgumentsField";
import { Choice, JsonChoice } from "./Choice";
import { EstimateFacts } from "./EstimateFacts";
import { SecretsSection } from "./SecretsSection";
import { PERMISSIONS } from "./search";
import type { Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const say = text.configure;

export function ConfigureStep({ wizard }: { wizard: Wizard }) {
  return (
    <>
      <Section title={say.size}>
        <Size wizard={wizard} />
        <EstimateFacts wizard={wizard} brief />
      </Section>
      <ArgumentsField wizard={wizard} />
      <Section title={say.sampling}>
        <Sampling wizard={wizard} />
      </Section>
      <SecretsSection wizard={wizard} />
      <Section title={say.advanced}>
        <Limits wizard={wizard} />
      </Section>
      <Section title={say.permissions} note={say.permissionsNote}>
        <Permissions wizard={wizard} />
      </Section>
    </>
  );
}

type Props = { wizard: Wizard };
function Size({ wizard }: Props) {
  const defaults = wizard.server.check?.defaults;
  const tasks = defaults ? formatCount(defaults.num_examples) : "5";
  const rollouts = defaults ? formatCount(defaults.rollouts_per_example) : "3";
  const fromPackage = defaults?.from_package ?? false;
  return (
    <div className={styles.grid}>
      <Choice
        {...{ wizard, name: "n", field: "settings.num_examples", label: say.tasks }}
        hint={say.tasksHint(tasks, fromPackage)}
        placeholder={tasks}
        isNumber
      />
      <Choice
        {...{ wizard, name: "r", field: "settings.rollouts_per_example", label: say.rollouts }}
        hint={say.rolloutsHint(rollouts, fromPackage)}
        placeholder={rollouts}
        isNumber
      />
      <Choice
        {...{ wizard, name: "tasks", field: "settings.task_ids", label: say.taskIds }}
        hint={say.taskIdsHint}
      />
    </div>
  );
}

function Sampling({ wizard }: Props) {
  return (
    <div className={styles.stack}>
      <div className={styles.grid}>
        <Choice
          {...{ wizard, name: "max_tokens", field: "settings.max_tokens", label: say.maxTokens }}
          hint={say.providerDefault}
          isNumber
        />
        <Choice
          {...{ wizard, name: "temperature", field: "settings.temperature", label: say.temperature }}
          hint={say.providerDefault}
          isNumber
        />
      </div>
      <JsonChoice wizard={wizard} name="sampling" field="settings.sampling_args" label={say.samplingArgs} />
    </div>
  );
}

function Limits({ wizard }: Props) {
  return (
    <div className={styles.stack}>
      <div className={styles.grid}>
        <Choice {...{ wizard, name: "name", field: "name", label: say.name, hint: say.nameHint }} />
        <Payer wizard={wizard} />
        <Choice
          {...{ wizard, name: "minutes", field: "timeout_minutes", label: say.minutes }}
          hint={say.minutesHint}
          placeholder="120"
          isNumber
        />
        <Choice
          {...{ wizard, name: "budget", field: "max_cost_usd", label: say.budget }}
          hint={say.budgetHint}
          isNumber
        />
        <Choice
          {...{ wizard, name: "retries", field: "settings.max_retries", label: say.retries }}
          hint={say.retriesHint}
          placeholder="0"
          isNumber
        />
        <Choice
          {...{ wizard, name: "concurrency", field: "settings.max_concurrent", label: say.concurrency }}
          hint={say.concurrencyHint}
          placeholder="32"
          isNumber
        />
      </div>
      <MoreSettings wizard={wizard} />
    </div>
  );
}

/** The settings that have no field of their own here; their problems stand together. */
function MoreSettings({ wizard }: Props) {
  const shown = new Set([
    ...["num_examples", "rollouts_per_example", "task_ids", "env_args", "max_tokens", "temperature"],
    ...["sampling_args", "max_retries", "max_concurrent", "agent"],
  ]);
  const found = Object.entries(wizard.server.problems)
    .filter(
      ([field]) => field === "settings" || (field.startsWith("settings.") && !shown.has(field.slice(9))),
    )
    .map(([, message]) => message);
  return (
    <TextArea
      code
      rows={2}
      label={say.more}
      hint={say.moreHint}
      error={found.length > 0 ? found.join(" ") : undefined}
      value={wizard.choices.more ?? ""}
      placeholder="{}"
      onChange={(event) => wizard.change({ more: event.target.value })}
    />
  );
}

function Payer({ wizard }: Props) {
  const session = useQuery(sessionQuery);
  const teams = (session.data?.teams ?? []).map(({ team }) => team);
  const chosen = wizard.choices.team;
  const names = chosen && !teams.includes(chosen) ? [...teams, chosen] : teams;
  return (
    <Select
      label={say.team}
      value={chosen ?? ""}
      error={wizard.server.problems.team}
      options={[
        { value: "", label: say.yourself(session.data?.user?.name ?? "") },
        ...names.map((name) => ({ value: name, label: name })),
      ]}
      onChange={(team) => wizard.change({ team })}
    />
  );
}

function Permissions({ wizard }: Props) {
  const allowed = wizard.choices.allow ?? [];
  return (
    <div className={styles.stack}>
      {PERMISSIONS.map((name) => (
        <Switch
          key={name}
          label={say.allow[name]}
          checked={allowed.includes(name)}
          error={wizard.server.problems[`permissions.${name}`]}
          onChange={(isOn) => {
            const next = PERMISSIONS.filter((each) => (each === name ? isOn : allowed.includes(each)));
            wizard.change({ allow: next.length > 0 ? next : undefined });
          }}
        />
      ))}
    </div>
  );
}

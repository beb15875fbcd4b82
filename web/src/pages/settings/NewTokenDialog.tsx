/** Asks for a token's name, what it may do, and when it expires. */
import { useState } from "react";
import { TOKEN_KEY } from "#/api/account";
import { useChange } from "#/api/change";
import type { components } from "#/api/schema";
import type { Scope } from "#/api/types";
import { Checkbox } from "#/design/Checkbox";
import { Select } from "#/design/Select";
import { TextField } from "#/design/TextField";
import { FormDialog } from "#/parts/FormDialog";
import styles from "./forms.module.css";
import { text } from "./words";

type NewToken = components["schemas"]["NewToken"];
type Made = components["schemas"]["TokenWithSecret"];

type Props = {
  title: string;
  /** Those that can be given on. */
  scopes: readonly string[];
  send: (body: NewToken, key: string) => Promise<Made>;
  onClose: () => void;
  onCreated: (made: Made) => void;
};

const words = text.tokens;
const PERIODS = ["7", "30", "90", "365", "never"] as const;
type Period = (typeof PERIODS)[number];

export function NewTokenDialog({ title, scopes, send, onClose, onCreated }: Props) {
  const [name, setName] = useState("");
  const [period, setPeriod] = useState<Period>("90");
  const [mode, setMode] = useState<"all" | "some">("all");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const create = useChange<NewToken, Made>({ send, refresh: [TOKEN_KEY], onDone: onCreated });
  const submit = () =>
    create.submit({
      name: name.trim(),
      expires_in_days: period === "never" ? null : Number(period),
      scopes: mode === "all" ? null : ([...chosen] as Scope[]),
    });
  const toggle = (scope: string, isOn: boolean) => {
    const next = new Set(chosen);
    if (isOn) next.add(scope);
    else next.delete(scope);
    setChosen(next);
  };
  return (
    <FormDialog
      title={title}
      onClose={onClose}
      action={words.create}
      onSubmit={submit}
      isBusy={create.isBusy}
      error={create.error}
      fields={["name", "expires_in_days"]}
    >
      <TextField
        label={words.name}
        hint={words.nameHint}
        value={name}
        maxLength={200}
        autoComplete="off"
        error={create.problems.name}
        onChange={(event) => setName(event.target.value)}
      />
      <Select
        label={words.expires}
        hint={words.capped}
        value={period}
        error={create.problems.expires_in_days}
        options={PERIODS.map((value) => ({
          value,
          label: value === "never" ? words.never : words.days(Number(value)),
        }))}
        onChange={setPeriod}
      />
      <Select
        label={words.may}
        value={mode}
        options={[
          { value: "all", label: words.everything },
          { value: "some", label: words.chosen },
        ]}
        onChange={setMode}
      />
      {mode === "some" && (
        <fieldset className={styles.scopes} aria-label={words.chosen}>
          {Object.entries(text.scopes)
            .filter(([scope]) => scopes.includes(scope))
            .map(([scope, meaning]) => (
              <Checkbox key={scope} checked={chosen.has(scope)} onChange={(isOn) => toggle(scope, isOn)}>
                {meaning}
              </Checkbox>
            ))}
        </fieldset>
      )}
    </FormDialog>
  );
}

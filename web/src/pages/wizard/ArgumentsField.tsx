/** The environment's arguments: a form made from the signature that its check kept, or JSON. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { versionQuery } from "#/api/startRun";
import type { EnvironmentVersion } from "#/api/types";
import { Section } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { Select } from "#/design/Select";
import { TextField } from "#/design/TextField";
import { type Argument, readArgument, readKind, readSignature, writeArgument } from "./arguments";
import { JsonChoice } from "./Choice";
import { readObject } from "./request";
import type { Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const say = text.configure;
const FIELD = "settings.env_args";

export function ArgumentsField({ wizard }: { wizard: Wizard }) {
  const version = wizard.choices.version ?? "latest";
  const known = useQuery(versionQuery(wizard.environment, version));
  const signature = readSignature(known.data as EnvironmentVersion | undefined);
  const values = readObject(wizard.choices.args);
  const [show, setShow] = useState<"form" | "json">("form");
  const mayForm = signature !== null && values !== null && (signature.length > 0 || isEmpty(values));
  const isForm = mayForm && show === "form";
  return (
    <Section
      title={say.arguments}
      actions={
        mayForm && (
          <Segmented
            label={say.show}
            value={show}
            options={[
              { value: "form", label: say.asForm },
              { value: "json", label: say.asJson },
            ]}
            onChange={setShow}
          />
        )
      }
    >
      {isForm ? (
        <ArgumentForm wizard={wizard} signature={signature} values={values} />
      ) : (
        <JsonChoice
          wizard={wizard}
          name="args"
          field={FIELD}
          label={say.argumentsJson}
          {...(signature === null ? { hint: say.argumentsUnknown } : {})}
        />
      )}
    </Section>
  );
}

const isEmpty = (values: object): boolean => Object.keys(values).length === 0;

type FormProps = {
  wizard: Wizard;
  signature: readonly Argument[];
  values: Record<string, unknown>;
};

function ArgumentForm({ wizard, signature, values }: FormProps) {
  const set = (name: string, value: unknown) => {
    const { [name]: _, ...others } = values;
    const next = value === undefined ? others : { ...others, [name]: value };
    wizard.change({ args: isEmpty(next) ? undefined : JSON.stringify(next) });
  };
  const unnamed = Object.keys(values).filter((name) => !signature.some((each) => each.name === name));
  const problem = wizard.server.problems[FIELD];
  return (
    <div className={styles.stack}>
      {signature.length === 0 && <p>{say.argumentsNone}</p>}
      <div className={styles.grid}>
        {[...signature, ...unnamed.map((name) => ({ name, type: null, default: "" }))].map((argument) => (
          <ArgumentInput
            key={argument.name}
            argument={argument}
            value={values[argument.name]}
            onChange={(value) => set(argument.name, value)}
          />
        ))}
      </div>
      {problem && (
        <p role="alert" className={styles.error}>
          {problem}
        </p>
      )}
    </div>
  );
}

type InputProps = { argument: Argument; value: unknown; onChange: (value: unknown) => void };

function ArgumentInput({ argument, value, onChange }: InputProps) {
  const kind = readKind(argument.type);
  const fallback = argument.default === null ? say.required : say.defaultOf(argument.default);
  const hint = argument.type ? `${argument.type}. ${fallback}` : fallback;
  if (kind === "boolean")
    return (
      <Select
        label={argument.name}
        hint={hint}
        value={value === undefined ? "" : String(value)}
        options={[
          { value: "", label: say.asDefault },
          { value: "true", label: "true" },
          { value: "false", label: "false" },
        ]}
        onChange={(chosen) => onChange(chosen === "" ? undefined : chosen === "true")}
      />
    );
  const written = writeArgument(value, kind);
  const isWrong = kind === "number" && typeof value === "string";
  return (
    <TextField
      label={argument.name}
      hint={hint}
      error={isWrong ? text.notNumber : undefined}
      value={written}
      placeholder={argument.default ?? ""}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange(readArgument(event.target.value, kind))}
    />
  );
}

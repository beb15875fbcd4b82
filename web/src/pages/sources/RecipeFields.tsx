/** The fields of a submission, each with what is wrong with it. */
import { Link } from "@tanstack/react-router";
import type { FieldProblems } from "#/api/change";
import type { SelectedRows, SourceRecipe } from "#/api/sources";
import type { SearchChange } from "#/app/search";
import { Switch } from "#/design/Switch";
import { TextField } from "#/design/TextField";
import type { SubmitSearch } from "./RecipeForm";
import { readExperiment } from "./recipe";
import styles from "./sources.module.css";
import { text } from "./words";

export type OwnFields = { name: string; minutes: string; cost: string; network: boolean };

type DatasetProps = {
  recipe: SourceRecipe;
  search: SubmitSearch;
  onSearch: (change: SearchChange<SubmitSearch>) => void;
  found: SelectedRows | undefined;
  problems: FieldProblems;
};

export function DatasetFields({ recipe, search, onSearch, found, problems }: DatasetProps) {
  return (
    <>
      <div className={styles.pair}>
        <TextField
          label={text.submit.dataset}
          hint={found ? describeRows(found) : text.submit.datasetHint}
          value={search.dataset ?? ""}
          placeholder={readExperiment(recipe, "dataset")}
          spellCheck={false}
          autoComplete="off"
          maxLength={200}
          onChange={(event) => onSearch({ dataset: event.target.value || undefined })}
          error={problems.dataset}
        />
        <TextField
          label={text.submit.rows}
          hint={text.submit.rowsHint}
          value={search.rows ?? ""}
          autoComplete="off"
          maxLength={200}
          onChange={(event) => onSearch({ rows: event.target.value || undefined })}
          error={problems.rows ?? problems.offset}
        />
      </div>
      {problems.dataset && (
        <p>
          <Link to="/datasets">{text.submit.upload}</Link>
        </p>
      )}
    </>
  );
}

const describeRows = ({ dataset, total, rule }: SelectedRows): string =>
  `${dataset.owner}/${dataset.name}@${dataset.sha256.slice(0, 12)} · ${text.submit.plays(dataset.selected_rows, total, rule)}`;

type LimitProps = {
  own: OwnFields;
  onChange: (change: Partial<OwnFields>) => void;
  problems: FieldProblems;
};

export function LimitFields({ own, onChange, problems }: LimitProps) {
  return (
    <>
      <div className={styles.pair}>
        <TextField
          label={text.submit.name}
          hint={text.submit.nameHint}
          value={own.name}
          autoComplete="off"
          maxLength={200}
          onChange={(event) => onChange({ name: event.target.value })}
          error={problems.name}
        />
        <TextField
          label={text.submit.minutes}
          type="number"
          min={1}
          value={own.minutes}
          onChange={(event) => onChange({ minutes: event.target.value })}
          error={problems.timeout_minutes}
        />
        <TextField
          label={text.submit.cost}
          hint={text.submit.costHint}
          type="number"
          min={0}
          step="any"
          value={own.cost}
          onChange={(event) => onChange({ cost: event.target.value })}
          error={problems.max_cost_usd}
        />
      </div>
      <Switch
        label={text.submit.network}
        hint={text.submit.networkHint}
        checked={own.network}
        onChange={(network) => onChange({ network })}
      />
    </>
  );
}

type SecretProps = {
  names: readonly string[];
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
};

/** Values go to this run alone; the page never shows or stores them. */
export function SecretFields({ names, values, onChange }: SecretProps) {
  return (
    <fieldset className={styles.secrets}>
      <legend>{text.submit.secrets}</legend>
      {names.map((name) => (
        <TextField
          key={name}
          label={name}
          hint={text.submit.secretHint}
          type="password"
          autoComplete="off"
          value={values[name] ?? ""}
          onChange={(event) => onChange({ ...values, [name]: event.target.value })}
        />
      ))}
    </fieldset>
  );
}

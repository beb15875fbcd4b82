/** How a recipe is played: its dataset and rows, limits, permissions and secrets; first shown, then started. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { fieldProblems } from "#/api/change";
import { sessionQuery } from "#/api/session";
import type { NewSubmission, SelectedRows, SourceInfo, SourceRecipe } from "#/api/sources";
import type { SearchChange } from "#/app/search";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import { DatasetFields, LimitFields, type OwnFields, SecretFields } from "./RecipeFields";
import { refuse } from "./rights";
import { SubmissionSummary } from "./SubmissionSummary";
import styles from "./sources.module.css";
import { usePreview, useSelectedRows, useSubmit } from "./submission";
import { text } from "./words";

/** What of a submission stands in the address: all but secrets and limits. */
export type SubmitSearch = { commit?: string; recipe?: string; dataset?: string; rows?: string };

const DEFAULT_MINUTES = 120;
const FIELDS = ["dataset", "rows", "offset", "name", "timeout_minutes", "max_cost_usd"];

type Props = {
  source: SourceInfo;
  commit: string;
  recipe: SourceRecipe;
  search: SubmitSearch;
  onSearch: (change: SearchChange<SubmitSearch>) => void;
};

export function RecipeForm({ source, commit, recipe, search, onSearch }: Props) {
  const { data: session } = useQuery(sessionQuery);
  const [own, setOwn] = useState<OwnFields>({
    name: "",
    minutes: String(DEFAULT_MINUTES),
    cost: "",
    network: false,
  });
  const [secrets, setSecrets] = useState<Record<string, string>>({});
  const rows = useSelectedRows(recipe, search.dataset ?? "", search.rows ?? "");
  const isKnown = rows.data !== undefined && !rows.error;
  const body = isKnown ? buildSubmission({ source, commit, recipe, search }, own, rows.data) : null;
  const preview = usePreview();
  const submit = useSubmit();
  const shown = preview.answer?.asked === JSON.stringify(body) ? preview.answer?.found : undefined;
  const missing = shown?.missing_secrets ?? [];
  const problems = { ...fieldProblems(rows.error), ...preview.problems, ...submit.problems };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!body) return;
    if (shown) submit.submit({ ...body, custom_secrets: pick(secrets, missing) });
    else preview.submit(body);
  };
  const isWaiting = preview.isBusy || submit.isBusy || missing.some((name) => !secrets[name]);
  return (
    <form className={styles.form} onSubmit={onSubmit}>
      <DatasetFields {...{ recipe, search, onSearch, problems }} found={isKnown ? rows.data : undefined} />
      <LimitFields own={own} problems={problems} onChange={(change) => setOwn({ ...own, ...change })} />
      {shown && rows.data && <SubmissionSummary preview={shown} rows={rows.data} />}
      {missing.length > 0 && <SecretFields names={missing} values={secrets} onChange={setSecrets} />}
      <Problem error={rows.error} fields={FIELDS} />
      <Problem error={preview.error ?? submit.error} fields={FIELDS} />
      {preview.isBusy && <p role="status">{text.submit.previewing}</p>}
      <div className={styles.buttons}>
        <RefusableButton
          type="submit"
          look="primary"
          reason={refuse(session, "runs:write")}
          disabled={!body || isWaiting}
        >
          {shown ? text.submit.start : text.submit.preview}
        </RefusableButton>
      </div>
    </form>
  );
}

function buildSubmission(
  chosen: Omit<Props, "onSearch">,
  own: OwnFields,
  rows: SelectedRows,
): Required<Omit<NewSubmission, "custom_secrets">> {
  const { source, commit, recipe, search } = chosen;
  return {
    source: source.id,
    recipe: recipe.recipe ?? {},
    dataset: rows.dataset,
    commit_sha: commit,
    branch: commit === source.commit_sha ? (source.branch ?? "") : "",
    rows: search.rows ?? "",
    offset: 0,
    name: own.name.trim(),
    permissions: { network: own.network },
    timeout_minutes: Number(own.minutes) || DEFAULT_MINUTES,
    max_cost_usd: own.cost.trim() === "" ? null : Number(own.cost),
  };
}

const pick = (all: Record<string, string>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, all[name] ?? ""]));

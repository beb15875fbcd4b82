/** A submission on its way: which rows, what would be played, and the start. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { RUNS_KEY } from "#/api/runs";
import type { NewSubmission, SelectedRows, SourceRecipe, SubmissionPreview } from "#/api/sources";
import type { RunInfo } from "#/api/types";

/** The dataset and the rows that a recipe plays, as the server resolves them; asked again when one changes. */
export function useSelectedRows(recipe: SourceRecipe, dataset: string, rows: string) {
  const body = { recipe: recipe.recipe ?? {}, dataset, rows };
  return useQuery<SelectedRows>({
    queryKey: ["dataset", "selected-rows", body],
    queryFn: ({ signal }) => read(api.POST("/api/v1/submissions/rows", { body, signal })),
    placeholderData: keepPreviousData,
    retry: false,
  });
}

type Previewed = { asked: string; found: SubmissionPreview };

/** The answer says what was asked, because the form may have changed since. */
export const usePreview = () =>
  useChange<NewSubmission, Previewed>({
    send: async (body) => ({
      asked: JSON.stringify(body),
      found: await read(api.POST("/api/v1/submissions/preview", { body })),
    }),
  });

export function useSubmit() {
  const navigate = useNavigate();
  return useChange<NewSubmission, RunInfo>({
    send: (body, key) =>
      read(api.POST("/api/v1/submissions", { params: { header: { "Idempotency-Key": key } }, body })),
    refresh: [RUNS_KEY],
    onDone: (run) => void navigate({ to: "/runs", search: { new: run.id } }),
  });
}

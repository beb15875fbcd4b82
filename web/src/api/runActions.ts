/** What people do to runs, as requests. Answers are written into the cache at once. */
import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { ApiError, api, read } from "./client";
import { dropRun, writeRun } from "./feedCache";
import { runKey } from "./runs";
import type { RunEdit, RunInfo, RunSharing, RunVisibility } from "./types";

const path = (run_id: string) => ({ params: { path: { run_id } } });

async function change(client: QueryClient, sent: Promise<RunInfo>): Promise<RunInfo> {
  const run = await sent;
  writeRun(client, run);
  return run;
}

export const stopRun = (client: QueryClient, id: string): Promise<RunInfo> =>
  change(client, read(api.POST("/api/v1/runs/{run_id}/stop", { ...path(id), body: {} })));

export type ResumeLimits = { timeout_minutes?: number; max_cost_usd?: number };

export const resumeRun = (client: QueryClient, id: string, limits: ResumeLimits): Promise<RunInfo> =>
  change(client, read(api.POST("/api/v1/runs/{run_id}/resume", { ...path(id), body: limits })));

export const editRun = (client: QueryClient, id: string, edit: Partial<RunEdit>): Promise<RunInfo> =>
  change(client, read(api.PATCH("/api/v1/runs/{run_id}", { ...path(id), body: edit })));

/** A run that somebody else has deleted already is deleted. */
export async function deleteRun(client: QueryClient, id: string): Promise<void> {
  try {
    await read(api.DELETE("/api/v1/runs/{run_id}", path(id)));
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  }
  dropRun(client, id);
}

export const sharingQuery = (id: string) =>
  queryOptions({
    queryKey: [...runKey(id), "sharing"],
    queryFn: ({ signal }) => read(api.GET("/api/v1/runs/{run_id}/visibility", { ...path(id), signal })),
  });

export async function shareRun(
  client: QueryClient,
  id: string,
  visibility: RunVisibility,
  newLink = false,
): Promise<RunSharing> {
  const body = { visibility, new_link: newLink };
  const sharing = await read(api.PUT("/api/v1/runs/{run_id}/visibility", { ...path(id), body }));
  client.setQueryData(sharingQuery(id).queryKey, sharing);
  return sharing;
}

/** What a text is now that somebody else has changed, as a refusal says: the next try replaces that. */
export const readCurrent = (error: Error | null): string | null =>
  error instanceof ApiError && error.code === "changed_meanwhile"
    ? String(error.details.current ?? "")
    : null;

/** What a run decides: a policy checked, more tasks planned, its recipe over time, and re-scores of it. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import { RUNS_KEY, runKey } from "./runs";
import type { GateQuery, PlanQuery, RunInfo } from "./types";

const inRun = (id: string) => ({ path: { run_id: id } });

export const gateQuery = (id: string, query: GateQuery) =>
  queryOptions({
    queryKey: [...runKey(id), "gate", query],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs/{run_id}/gate", { params: { ...inRun(id), query }, signal })),
    retry: false,
  });

export const planQuery = (id: string, query: PlanQuery) =>
  queryOptions({
    queryKey: [...runKey(id), "plan", query],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs/{run_id}/plan", { params: { ...inRun(id), query }, signal })),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const historyQuery = (id: string) =>
  queryOptions({
    queryKey: [...runKey(id), "history"],
    queryFn: ({ signal }) => read(api.GET("/api/v1/runs/{run_id}/history", { params: inRun(id), signal })),
  });

/** The runs that scored this one's rollouts again: they know it by its id, here or where it was played. */
export const rescoresQuery = (run: RunInfo) =>
  queryOptions({
    queryKey: [...RUNS_KEY, "rescores", run.id],
    queryFn: async ({ signal }) => {
      const query = { rescored_from: listIds(run), environment: [run.environment], limit: MOST_RESCORES };
      return (await read(api.GET("/api/v1/runs", { params: { query }, signal }))).items;
    },
  });

const MOST_RESCORES = 20;
/** An uploaded run's id elsewhere has a digest after it. */
const DIGEST = /-[0-9a-f]{8}$/;

export const listIds = (run: Pick<RunInfo, "id" | "client_run_id">): string[] =>
  run.client_run_id ? [run.id, run.client_run_id.replace(DIGEST, "")] : [run.id];

/** Runs of the same environment, to compare with. */
export const rivalsQuery = (run: RunInfo) =>
  queryOptions({
    queryKey: [...RUNS_KEY, "rivals", run.environment],
    queryFn: async ({ signal }) => {
      const query = { environment: [run.environment], limit: MOST_RIVALS };
      return (await read(api.GET("/api/v1/runs", { params: { query }, signal }))).items;
    },
  });

const MOST_RIVALS = 100;

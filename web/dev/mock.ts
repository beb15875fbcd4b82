/** Answers the reading API with made-up runs while `npm run dev` has no server (PROCTOR_URL); never built. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin } from "vite";
import type { FeedEvent, RunInfo, RunPage } from "../src/api/types.ts";
import { buildDistribution, buildFacets, buildRuns, buildSummary, filterRuns, playOn } from "./runs.ts";

const PAGE = 200;
const TICK_MS = 400;

export function mockApi(): Plugin {
  const runs = buildRuns(300);
  return {
    name: "mock-api",
    apply: "serve",
    configureServer(server) {
      server.middlewares.use("/api/v1", (request, response) => {
        const url = new URL(request.url ?? "/", "http://mock");
        if (url.pathname === "/feed") return sendFeed(request, response, runs);
        const body = answer(url, runs);
        response.statusCode = body === null ? 404 : 200;
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(body ?? { code: "not_found", message: "The mock does not have that." }));
      });
    },
  };
}

function answer(url: URL, runs: RunInfo[]): unknown {
  const { pathname: path, searchParams: query } = url;
  if (path === "/session")
    return {
      user: { name: "ada" },
      teams: [],
      scopes: [],
      expires_at: null,
      server_version: "dev",
      has_logins: true,
    };
  if (path === "/runs") return listRuns(runs, query);
  if (path === "/runs/facets") return buildFacets(filterRuns(runs, query));
  const [, id, part] = /^\/runs\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
  const run = runs.find((each) => each.id === id);
  if (!run) return null;
  if (part === undefined) return run;
  if (part === "summary") return buildSummary(run);
  if (part === "distribution") return buildDistribution(query.get("of") ?? "reward");
  return null;
}

function listRuns(runs: RunInfo[], query: URLSearchParams): RunPage {
  const found = filterRuns(runs, query);
  const from = Number(query.get("cursor") ?? 0);
  const limit = Number(query.get("limit") ?? PAGE);
  const next = from + limit < found.length ? String(from + limit) : null;
  return { items: found.slice(from, from + limit), total: found.length, next_cursor: next };
}

function sendFeed(request: IncomingMessage, response: ServerResponse, runs: RunInfo[]): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  response.write(": here\n\n");
  const timer = setInterval(() => {
    const event: FeedEvent | null = playOn(runs);
    response.write(event ? `data: ${JSON.stringify(event)}\n\n` : ": here\n\n");
  }, TICK_MS);
  request.on("close", () => clearInterval(timer));
}

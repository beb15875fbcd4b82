/** Made-up runs that look like real ones, the same at each start. */
import type {
  Distribution,
  FacetValue,
  FeedEvent,
  RunFacets,
  RunInfo,
  RunStatus,
  Summary,
} from "../src/api/types.ts";

const ENVIRONMENTS = ["ada/gsm8k", "ada/math-python", "lab/swe-tasks", "lab/wiki-search", "grace/wordle"];
const MODELS = ["openai/gpt-4.1-mini", "anthropic/claude-haiku", "local", "qwen/qwen3-30b-a3b"];
const STATUSES: RunStatus[] = [
  "running",
  "pending",
  "finished",
  "finished",
  "finished",
  "finished",
  "failed",
  "stopped",
  "timed_out",
];
const NOW = Date.now() / 1000;

/** A small generator with a seed, so that screenshots are the same each time. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

export function buildRuns(count: number): RunInfo[] {
  const random = createRandom(7);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  return Array.from({ length: count }, (_, index) => buildRun(index, pick, random));
}

function buildRun(index: number, pick: <T>(items: readonly T[]) => T, random: () => number): RunInfo {
  const status = index === 0 ? "running" : pick(STATUSES);
  const isOver = !["running", "pending"].includes(status);
  const planned = pick([15, 60, 300, 1500]);
  const settled =
    status === "pending" ? 0 : isOver && status === "finished" ? planned : Math.floor(planned * random());
  const failed = Math.floor(settled * random() * 0.1);
  const mean = random();
  const half = 0.02 + 0.1 * random();
  const created = NOW - 1800 * index - 60;
  const interval = {
    low: Math.max(0, mean - half),
    high: Math.min(1, mean + half),
    kind: "bootstrap",
    level: 0.95,
  };
  return {
    id: `run-${(0x1a2b3c + index * 7919).toString(16)}`,
    kind: pick(["hosted", "hosted", "local"]),
    name: random() < 0.3 ? pick(["nightly", "temperature sweep", "before the fix", "baseline"]) : "",
    owner: pick(["ada", "grace", "linus"]),
    agent: pick([null, null, "claude", "tool_loop"]),
    runtime: "hosted",
    client_run_id: null,
    team: pick([null, null, "lab"]),
    visibility: "team",
    note: "",
    revision: 0,
    may_change: true,
    environment: pick(ENVIRONMENTS),
    version: pick(["1.2.0", "1.3.0", "0.1.0"]),
    content_hash: "aaf40edd4ead134b52a1",
    model: pick(MODELS),
    status,
    cause:
      status === "failed"
        ? {
            code: "provider",
            message: "openai/gpt-4.1-mini answered 429 to 31 of 60 calls: rate limit exceeded.",
            next_step: "Resume the run with a smaller --max-concurrent.",
          }
        : status === "timed_out"
          ? {
              code: "time_limit",
              message: "The run took longer than its limit of 120 minutes.",
              next_step: "Resume it with a larger --timeout-minutes.",
            }
          : null,
    progress: { planned, settled, scored: settled - failed, failed, mean_reward: mean },
    score:
      settled > 0
        ? { mean, interval, tasks: Math.ceil(settled / 3), coverage: (settled - failed) / planned }
        : null,
    suite: null,
    rescored_from: null,
    tags: random() < 0.2 ? ["paper"] : [],
    permissions: { sandboxes: random() < 0.3, instances: false, network: false },
    timeout_minutes: 120,
    max_cost_usd: null,
    cost_usd: settled * 0.0021,
    input_tokens: settled * 1830,
    output_tokens: settled * 412,
    attempt: 1,
    queue_place: status === "pending" ? 2 : null,
    waiting_because: "",
    created_at: created,
    started_at: status === "pending" ? null : created + 4,
    ended_at: isOver ? created + 60 + 4000 * random() : null,
    last_seq: 10,
    settings: {
      num_examples: planned / 3,
      rollouts_per_example: 3,
      temperature: 0.7,
      env_args: { split: "test" },
      max_tokens: 1024,
    },
    resolved: {
      tasks: planned / 3,
      sampling_args: { temperature: 0.7, max_tokens: 1024 },
      max_concurrent_generation: 32,
      num_workers: 1,
    },
    summary: null,
    origin: null,
  };
}

export function filterRuns(runs: readonly RunInfo[], query: URLSearchParams): RunInfo[] {
  const any = (name: string, value: string | null) =>
    !query.has(name) || query.getAll(name).includes(value ?? "");
  const q = query.get("q")?.toLowerCase() ?? "";
  const found = runs.filter(
    (run) =>
      any("status", run.status) &&
      any("kind", run.kind) &&
      any("environment", run.environment) &&
      any("model", run.model) &&
      any("agent", run.agent) &&
      any("owner", run.owner) &&
      [run.id, run.name, run.environment, run.model, run.owner].some((text) =>
        text.toLowerCase().includes(q),
      ),
  );
  const keys: Record<string, (run: RunInfo) => number | string> = {
    score: (run) => run.score?.mean ?? -1,
    cost: (run) => run.cost_usd ?? -1,
    model: (run) => run.model,
    name: (run) => run.name || run.environment,
    duration: (run) => (run.ended_at ?? 0) - (run.started_at ?? 0),
  };
  const key = keys[query.get("sort") ?? ""] ?? ((run: RunInfo) => run.created_at);
  const sign = query.get("descending") === "false" ? 1 : -1;
  return found.sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
}

export function buildFacets(runs: readonly RunInfo[]): RunFacets {
  const count = (of: (run: RunInfo) => string | null): FacetValue[] => {
    const counts = new Map<string, number>();
    for (const value of runs.map(of)) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
    return [...counts].map(([value, n]) => ({ value, count: n })).sort((a, b) => b.count - a.count);
  };
  return {
    total: runs.length,
    status: count((run) => run.status),
    kind: count((run) => run.kind),
    environment: count((run) => run.environment),
    version: count((run) => run.version),
    model: count((run) => run.model),
    agent: count((run) => run.agent),
    owner: count((run) => run.owner),
    team: count((run) => run.team),
    dataset: count((run) => run.origin?.dataset.name ?? null),
    tag: count((run) => run.tags[0] ?? null),
  };
}

export function buildSummary(run: RunInfo): Summary {
  const { planned, settled, scored, failed } = run.progress;
  const mean = run.score?.mean ?? null;
  const estimate = { mean, se: 0.03, interval: run.score?.interval ?? null, n: run.score?.tasks ?? 0 };
  const p = mean ?? 0;
  const curve = (f: (k: number) => number) => Object.fromEntries([1, 2, 3, 4].map((k) => [String(k), f(k)]));
  const usage = {
    input_tokens: run.input_tokens,
    output_tokens: run.output_tokens,
    cached_tokens: 1200,
    reasoning_tokens: 0,
  };
  return {
    tasks: Math.ceil((planned ?? 0) / 3),
    rollouts_per_task: 3,
    planned,
    finished: settled,
    scored,
    timed_out: 0,
    coverage: planned ? scored / planned : null,
    outcomes: {
      scored: Math.round(scored * 0.95),
      truncated: scored - Math.round(scored * 0.95),
      model_error: failed,
    },
    reward: estimate,
    rewards: null,
    bounds: failed > 0 ? { low: p * 0.9, high: Math.min(1, p * 0.9 + 0.1) } : null,
    metrics: {
      correct: estimate,
      format: { ...estimate, mean: 0.97, interval: { low: 0.93, high: 0.99, kind: "wilson", level: 0.95 } },
    },
    pass_threshold: 0.5,
    scores: {
      attempts: settled,
      graded: scored,
      passed: Math.round(scored * p),
      failed,
      skipped: 0,
      pass_rate: p,
      reward_over_graded: p,
      reward_over_all: p * 0.95,
    },
    pass_at_k: curve((k) => 1 - (1 - p) ** k),
    pass_hat_k: curve((k) => p ** k),
    stop_conditions: { max_turns_reached: settled },
    seconds: { median: 12.4, p90: 41.2, longest: 180 },
    usage,
    other_usage: { "openai/gpt-4.1": { ...usage, input_tokens: 48_210, output_tokens: 1_204 } },
    cost_usd: run.cost_usd,
    unpriced_models: [],
    errors: [],
    cleanup_errors: [],
    retried: 3,
    members: {},
    reused_replies: {},
    saved_usd: null,
  };
}

export function buildDistribution(of: string): Distribution {
  const heights =
    of === "reward" ? [24, 3, 2, 4, 6, 3, 2, 5, 9, 42] : [3, 18, 40, 31, 22, 14, 9, 6, 3, 2, 1, 1];
  const top = of === "reward" ? 1 : 180;
  const bins = heights.map((count, at) => ({
    low: (at * top) / heights.length,
    high: ((at + 1) * top) / heights.length,
    count,
  }));
  return {
    of,
    n: 100,
    missing: 3,
    bins,
    mean: top * 0.6,
    median: top * 0.7,
    p90: top,
    complete: true,
    lowest: 0,
    highest: top,
  };
}

/** One running run goes on a little; now and then a new one appears. */
export function playOn(runs: RunInfo[]): FeedEvent | null {
  const run = runs.find(
    (each) => each.status === "running" && each.progress.settled < (each.progress.planned ?? 0),
  );
  if (!run) return null;
  const settled = run.progress.settled + 1;
  Object.assign(run, {
    progress: { ...run.progress, settled, scored: settled - run.progress.failed },
    last_seq: run.last_seq + 1,
    score: run.score && {
      ...run.score,
      coverage: (settled - run.progress.failed) / (run.progress.planned ?? 1),
    },
  });
  return { kind: "run", at: Date.now() / 1000, run };
}

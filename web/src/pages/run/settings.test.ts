import { describe, expect, it } from "vitest";
import { buildCommand, buildToml } from "./settings";

const run = {
  environment: "ada/gsm8k",
  version: "1.2.0",
  model: "openai/gpt-4.1-mini",
  kind: "hosted",
  settings: {
    env_id: "gsm8k",
    num_examples: 10,
    temperature: 0.7,
    env_args: { split: "it's a test", nothing: null },
    shuffle: true,
    verbose: false,
    task_ids: ["a", "b c"],
    headers: {},
  },
  timeout_minutes: 120,
  max_cost_usd: null,
  team: null,
  name: "night run",
  agent: null,
  permissions: { sandboxes: true, instances: false, network: false },
} as const;

describe("a run's settings", () => {
  it("are a command that a shell takes as it is meant", () => {
    expect(buildCommand(run)).toBe(
      [
        "proctor eval run ada/gsm8k@1.2.0",
        "-m openai/gpt-4.1-mini",
        "--num-examples 10",
        "--temperature 0.7",
        `--env-args '{"split":"it'\\''s a test","nothing":null}'`,
        "--shuffle",
        "--task-ids 'a,b c'",
        "--hosted",
        "--timeout-minutes 120",
        "--allow-sandbox-access",
        "--eval-name 'night run'",
      ].join(" \\\n  "),
    );
  });

  it("are a suite of one evaluation", () => {
    expect(buildToml(run)).toBe(
      [
        "[[eval]]",
        'env_id = "ada/gsm8k@1.2.0"',
        'model = "openai/gpt-4.1-mini"',
        "hosted = true",
        "timeout_minutes = 120",
        "allow_sandbox_access = true",
        'eval_name = "night run"',
        "num_examples = 10",
        "temperature = 0.7",
        `env_args = { split = "it's a test" }`,
        "shuffle = true",
        'task_ids = ["a", "b c"]',
      ].join("\n"),
    );
  });
});

import { describe, expect, it } from "vitest";
import type { NewRun, RunInfo } from "#/api/types";
import { readArgument, readKind, writeArgument } from "./arguments";
import { buildCommand, buildToml } from "./equivalents";
import { wizardAddress } from "./link";
import { buildRequest, repeatRun } from "./request";
import { changeWizard, readWizardSearch } from "./search";

const request = (search: object): NewRun => buildRequest("ada/sums", search, []).body;

describe("the same run elsewhere", () => {
  const run = request({
    version: "1.0",
    model: "gpt-5",
    agent: "claude",
    n: "-1",
    r: "4",
    args: `{"name":"O'Hara","deep":{"x":null,"y":[1,2]}}`,
    temperature: "0.5",
    minutes: "240",
    budget: "2.5",
    allow: ["network"],
    name: "It's a run",
    tasks: "a, b",
  });

  it("as a command, quoted for a shell", () => {
    expect(buildCommand(run)).toBe(
      `proctor eval run ada/sums@1.0 claude -m gpt-5 -n -1 -r 4 -T 0.5 -a '{"name":"O'\\''Hara","deep":{"x":null,"y":[1,2]}}' ` +
        "--task-ids a,b --max-cost 2.5 --timeout-minutes 240 --allow-network-access --eval-name 'It'\\''s a run' --hosted",
    );
  });

  it("as TOML, without what TOML cannot say", () => {
    expect(buildToml(run)).toContain('env_args = { name = "O\'Hara", deep = { y = [1, 2] } }');
    expect(buildToml(run)).toMatch(/^hosted = true\n\n\[\[eval\]\]\nenv_id = "ada\/sums@1.0"/);
  });

  it("names secrets, and never writes them", () => {
    const { body } = buildRequest("ada/sums", {}, [{ id: 1, name: "KEY", value: "hidden" }]);
    expect(buildCommand(body)).toContain("--custom-secrets KEY");
    expect(buildCommand(body) + buildToml(body)).not.toContain("hidden");
  });
});

describe("a request", () => {
  it("sends numbers as numbers, and leaves it to the server to refuse others", () => {
    expect(request({ n: " 5 ", temperature: "hot", minutes: "2e1" })).toMatchObject({
      settings: { num_examples: 5, temperature: "hot" },
      timeout_minutes: 20,
    });
  });

  it("says at its field what is not JSON", () => {
    const { problems } = buildRequest("ada/sums", { args: "[1]", sampling: "{", more: "3" }, []);
    expect(Object.keys(problems).sort()).toEqual(["settings", "settings.env_args", "settings.sampling_args"]);
  });

  it("repeats a run with every setting, known or not", () => {
    const settings = { num_examples: 7, env_args: { x: 1 }, task_ids: ["a"], timeout: 9, label: "sweep" };
    const run = {
      id: "run-1",
      environment: "ada/sums",
      version: "1.0",
      model: "gpt-5",
      name: "",
      team: "lab",
      timeout_minutes: 60,
      max_cost_usd: null,
      permissions: { sandboxes: false, instances: false, network: true },
      settings,
    } as unknown as RunInfo;
    const again = request(repeatRun(run));
    const { label: _, ...kept } = settings;
    expect(again).toMatchObject({
      environment: "ada/sums@1.0",
      model: "gpt-5",
      team: "lab",
      timeout_minutes: 60,
    });
    expect(again.settings).toEqual(kept);
    expect(again.permissions).toEqual({ network: true });
  });
});

describe("addresses", () => {
  it("fill the wizard", () => {
    expect(wizardAddress({ environment: "ada/sums@1.0", tasks: 400, rollouts: 2, args: { a: 1 } })).toBe(
      "/e/ada/sums/run?version=1.0&n=400&r=2&args=%7B%22a%22%3A1%7D",
    );
    expect(wizardAddress({ from: "run-1" })).toBe("/run?from=run-1");
    expect(wizardAddress({ environment: "a b/../x" })).toBe("/run");
  });

  it("from anywhere give choices and never an error", () => {
    expect(
      readWizardSearch({ step: "nowhere", allow: ["network", "root"], n: ["1", "2"], model: {} }),
    ).toEqual({
      allow: ["network"],
      n: "1",
      model: "[object Object]",
    });
    expect(changeWizard({ n: "1", r: "2" }, { n: "" })).toEqual({ r: "2" });
  });
});

describe("arguments", () => {
  it("have a control for their type", () => {
    expect(["int", "float | None", "bool", "str", "list[str]", null].map(readKind)).toEqual([
      "number",
      "number",
      "boolean",
      "text",
      "value",
      "value",
    ]);
  });

  it("keep what a person typed", () => {
    for (const typed of ["3", "hard", '["a"]', '"3"', "<script>", "1e3"])
      expect(readArgument(writeArgument(readArgument(typed, "value"), "value"), "value")).toEqual(
        readArgument(typed, "value"),
      );
    expect(readArgument("3", "text")).toBe("3");
    expect(readArgument("", "number")).toBeUndefined();
  });
});

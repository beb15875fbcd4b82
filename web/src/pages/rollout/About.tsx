/** Everything else that was stored of a rollout: its task, its tokens, its times, its state. */
import type { RolloutView, Usage } from "#/api/types";
import { CodeBlock } from "#/design/CodeBlock";
import { Facts } from "#/design/Facts";
import { showControls } from "#/parts/ansiText";
import { formatBytes, formatCount, formatDuration, formatTime } from "#/parts/format";
import { writeJson } from "#/trace/json";
import { words } from "#/words";
import { Part } from "./Details";

export function About({ view }: { view: RolloutView }) {
  const { entry, timing } = view;
  const text = words.rollout.details;
  const others = Object.entries(view.other_usage);
  return (
    <>
      <Part title={text.facts}>
        <Facts
          facts={[
            { name: text.task, value: showControls(String(entry.task)) },
            entry.env !== "" && { name: text.environment, value: showControls(entry.env) },
            entry.started_at > 0 && { name: text.started, value: formatTime(entry.started_at) },
            timing !== null && timing.total > 0 && { name: text.took, value: formatDuration(timing.total) },
            entry.stop_condition !== "" && { name: text.stop, value: showControls(entry.stop_condition) },
            { name: text.usage, value: describeUsage(view.usage) },
            ...others.map(([model, usage]) => ({
              name: text.usageOf(showControls(model)),
              value: describeUsage(usage),
            })),
            view.tool_names.length > 0 && {
              name: text.tools,
              value: showControls(view.tool_names.join(", ")),
            },
            { name: text.size, value: formatBytes(view.size) },
          ]}
        />
      </Part>
      <Value title={text.info} value={view.info} />
      {Object.keys(view.columns).length > 0 && <Value title={text.columns} value={view.columns} />}
    </>
  );
}

function describeUsage({ input_tokens = 0, cached_tokens = 0, output_tokens = 0 }: Usage): string {
  const cached = cached_tokens > 0 ? formatCount(cached_tokens) : "";
  return words.rollout.details.usageText(formatCount(input_tokens), cached, formatCount(output_tokens));
}

export function Value({ title, value }: { title: string; value: unknown }) {
  if (value === null || value === undefined || value === "") return null;
  const text = typeof value === "string" ? value : writeJson(value);
  return (
    <Part title={title}>
      <CodeBlock text={text} label={title} wrap>
        {showControls(text)}
      </CodeBlock>
    </Part>
  );
}

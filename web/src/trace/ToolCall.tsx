/** A tool that the model called: its arguments as the model wrote them, and what came back. */
import type { RolloutAddress } from "#/api/rollouts";
import type { ToolBrief, ToolContent } from "#/api/types";
import { Badge } from "#/design/Badge";
import { classes } from "#/design/classes";
import { Icon } from "#/design/Icon";
import { showControls } from "#/parts/ansiText";
import { words } from "#/words";
import { LongText } from "./LongText";
import { Picture } from "./Picture";
import styles from "./ToolCall.module.css";

type Props = {
  address: RolloutAddress;
  event: number;
  /** Among the tools of its event. */
  place: number;
  brief: ToolBrief | undefined;
  tool: ToolContent;
  isRaw: boolean;
};

export function ToolCall({ address, event, place, brief, tool, isRaw }: Props) {
  const look = isRaw ? "raw" : "output";
  const name = showControls(tool.name);
  const source = { address, event };
  return (
    <section className={styles.tool} aria-label={words.trace.tool(name)}>
      <header className={styles.name}>
        <Icon name="wrench" size={14} />
        <code>{name}</code>
        {brief?.is_error && (
          <Badge tone="bad" icon="xCircle">
            {words.trace.toolFailed}
          </Badge>
        )}
      </header>
      <Block label={words.trace.argumentsOf(name)}>
        <LongText
          text={tool.arguments}
          look={look}
          source={{
            ...source,
            name: words.trace.argumentsOf(name),
            pick: (all) => all.tools[place]?.arguments,
          }}
        />
      </Block>
      {tool.result === null ? (
        <p className={styles.none}>{words.trace.noResult}</p>
      ) : (
        <Block label={words.trace.resultOf(name)} isResult isBad={brief?.is_error ?? false}>
          <LongText
            text={tool.result}
            look={look}
            source={{ ...source, name: words.trace.resultOf(name), pick: (all) => all.tools[place]?.result }}
          />
        </Block>
      )}
      {tool.result_images.map((image) => (
        <Picture key={image.part} address={address} event={event} image={image} />
      ))}
    </section>
  );
}

function Block(props: { label: string; isResult?: boolean; isBad?: boolean; children: React.ReactNode }) {
  return (
    <div
      className={classes(styles.block, props.isResult && styles.result, props.isBad && styles.bad)}
      role="region"
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
      tabIndex={0}
    >
      {props.isResult && <span className={styles.arrow}>→</span>}
      <div className={styles.content}>{props.children}</div>
    </div>
  );
}

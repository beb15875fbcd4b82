/** What a step says: reasoning, text, images, tools with their results; of a judge also what it was asked. */
import type { RolloutAddress } from "#/api/rollouts";
import type { EventBrief, EventContent } from "#/api/types";
import { Icon } from "#/design/Icon";
import { words } from "#/words";
import { LongText } from "./LongText";
import { Picture } from "./Picture";
import styles from "./StepBody.module.css";
import type { ShownKinds } from "./steps";
import { ToolCall } from "./ToolCall";

type Props = {
  address: RolloutAddress;
  brief: EventBrief;
  content: EventContent;
  shown: ShownKinds;
  isRaw: boolean;
};

export function StepBody({ address, brief, content, shown, isRaw }: Props) {
  const source = { address, event: brief.index };
  const isOutput = brief.role === "tool";
  const look = isRaw ? "raw" : isOutput ? "output" : "prose";
  const isEmpty =
    brief.size === 0 && brief.reasoning_size === 0 && brief.images === 0 && brief.tools.length === 0;
  return (
    <div className={styles.body}>
      {content.request && (
        <details className={styles.aside}>
          <summary>{words.trace.request}</summary>
          <LongText
            text={content.request}
            look={isRaw ? "raw" : "output"}
            source={{ ...source, name: words.trace.request, pick: (event) => event.request }}
          />
        </details>
      )}
      {content.reasoning && shown.has("reasoning") && (
        <section className={styles.reasoning} aria-label={words.trace.reasoning}>
          <h4 className={styles.label}>
            <Icon name="more" size={14} /> {words.trace.reasoning}
          </h4>
          <LongText
            text={content.reasoning}
            look={isRaw ? "raw" : "prose"}
            source={{ ...source, name: words.trace.reasoning, pick: (event) => event.reasoning }}
          />
        </section>
      )}
      {brief.size > 0 && (
        <LongText
          text={content.text}
          look={look}
          source={{ ...source, name: words.trace.text, pick: (event) => event.text }}
        />
      )}
      {isEmpty && <p className={styles.empty}>{words.trace.empty}</p>}
      {content.images.map((image) => (
        <Picture key={image.part} address={address} event={brief.index} image={image} />
      ))}
      {shown.has("tools") &&
        content.tools.map((tool, place) => (
          <ToolCall
            key={place}
            address={address}
            event={brief.index}
            place={place}
            brief={brief.tools[place]}
            tool={tool}
            isRaw={isRaw}
          />
        ))}
    </div>
  );
}

/** What was asked and answered, as text, and nothing that would sway who reads it. */
import { useEffect, useRef } from "react";
import type { BlindRollout } from "#/api/types";
import styles from "./labels.module.css";
import { labelWords } from "./words";

const text = labelWords.label;

export function BlindConversation({ rollout, showsAnswer }: { rollout: BlindRollout; showsAnswer: boolean }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.focus({ preventScroll: true }), []);
  return (
    <article ref={box} className={styles.conversation} tabIndex={-1} aria-label={text.title}>
      {[...rollout.prompt, ...rollout.completion].map((message, index) => (
        <section key={index} className={styles.message} data-role={message.role}>
          <h3 className={styles.role}>{text.roles[message.role] ?? message.role}</h3>
          <p className={styles.text}>{message.text}</p>
          {message.left_out > 0 && <p className={styles.faint}>{text.cut(message.left_out)}</p>}
        </section>
      ))}
      {rollout.left_out > 0 && <p className={styles.faint}>{text.left(rollout.left_out)}</p>}
      {showsAnswer && rollout.answer !== null && (
        <section className={styles.message} data-role="answer">
          <h3 className={styles.role}>{text.answer}</h3>
          <p className={styles.text}>{rollout.answer}</p>
        </section>
      )}
    </article>
  );
}

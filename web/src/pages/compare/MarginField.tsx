/** Asks a question of its own: is the difference smaller than a margin? */
import { useState } from "react";
import type { Comparison } from "#/api/types";
import { Badge, type Tone } from "#/design/Badge";
import { Button } from "#/design/Button";
import type { IconName } from "#/design/Icon";
import { Section } from "#/design/Section";
import { TextField } from "#/design/TextField";
import { words } from "#/words";
import styles from "./MarginField.module.css";
import { readMargin } from "./search";

const text = words.compare;

type Equivalence = NonNullable<Comparison["equivalence"]>;

const LOOKS: Record<Equivalence["verdict"], { tone: Tone; icon: IconName }> = {
  equivalent: { tone: "good", icon: "check" },
  no_worse: { tone: "good", icon: "check" },
  worse: { tone: "bad", icon: "arrowDown" },
  not_shown: { tone: "neutral", icon: "minus" },
  too_little_data: { tone: "warn", icon: "alert" },
};

type Props = {
  margin: number | undefined;
  lines: readonly { name: string; equivalence: Equivalence | null }[];
  onChange: (margin: number | undefined) => void;
};

export function MarginField({ margin, lines, onChange }: Props) {
  const [typed, setTyped] = useState(margin === undefined ? "" : String(margin));
  const [known, setKnown] = useState(margin);
  if (known !== margin) {
    setKnown(margin);
    setTyped(margin === undefined ? "" : String(margin));
  }
  const isInvalid = typed.trim() !== "" && readMargin(typed.trim()) === undefined;
  const submit = () => !isInvalid && onChange(readMargin(typed.trim()));
  const answered = lines.filter(({ equivalence }) => equivalence !== null);
  return (
    <Section title={text.margin}>
      <form
        className={styles.line}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <TextField
          label={text.margin}
          hideLabel
          inputMode="decimal"
          placeholder="0.02"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onBlur={submit}
          error={isInvalid ? text.marginInvalid : undefined}
          className={styles.field ?? ""}
        />
        <Button type="submit">{words.compare.ask}</Button>
        <div className={styles.answers} aria-live="polite">
          {answered.length === 0 && <span className={styles.none}>{text.marginNone}</span>}
          {answered.map(
            ({ name, equivalence }) =>
              equivalence && (
                <p key={name} className={styles.answer}>
                  <Badge {...LOOKS[equivalence.verdict]}>{text.equivalence[equivalence.verdict]}</Badge>
                  {lines.length > 1 && <strong>{name}</strong>}
                  <span>{equivalence.text}</span>
                </p>
              ),
          )}
        </div>
      </form>
    </Section>
  );
}

/** One line of terminal output in its colours. */
import { classes } from "#/design/classes";
import styles from "./Ansi.module.css";
import { type AnsiStyle, parseAnsi } from "./ansiText";

export function Ansi({ text }: { text: string }) {
  return parseAnsi(text).spans.map((span, index) => {
    const name = nameStyle(span.style);
    return name ? (
      <span key={index} className={name}>
        {span.text}
      </span>
    ) : (
      span.text
    );
  });
}

const nameStyle = (style: AnsiStyle): string =>
  classes(
    style.color && styles[style.color],
    style.background && styles[`on_${style.background}`],
    style.bold && styles.bold,
    style.dim && styles.dim,
    style.italic && styles.italic,
    style.underline && styles.underline,
    style.inverse && styles.inverse,
  );

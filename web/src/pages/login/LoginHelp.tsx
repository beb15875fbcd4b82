/** What to do when neither a token nor a link works. */
import { CodeBlock } from "#/design/CodeBlock";
import styles from "./LoginPage.module.css";
import { text } from "./words";

/** Words between backticks are code. */
const WithCode = ({ text: sentence }: { text: string }) =>
  sentence.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part));

export function LoginHelp() {
  return (
    <details className={styles.help}>
      <summary>{text.help}</summary>
      <dl>
        {text.helps.map((each) => (
          <div key={each.title}>
            <dt>{each.title}</dt>
            <dd>
              <WithCode text={each.text} />
            </dd>
          </div>
        ))}
      </dl>
      <CodeBlock text={text.adminCommand(location.origin)} wrap />
    </details>
  );
}

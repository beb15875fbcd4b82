/** Why the server refused a change, or that it did not answer. What is said at a field is not said again here. */
import { fieldProblems } from "#/api/change";
import { ApiError } from "#/api/client";
import { Icon } from "#/design/Icon";
import { words } from "#/words";
import styles from "./Problem.module.css";

type Props = { error: Error | null /** Fields that show their own problem. */; fields?: readonly string[] };

export function Problem({ error, fields = [] }: Props) {
  if (!error) return null;
  const found = Object.keys(fieldProblems(error));
  if (found.length > 0 && found.every((field) => fields.includes(field))) return null;
  return (
    <p role="alert" className={styles.problem}>
      <Icon name="alert" />
      <span>
        {error.message}{" "}
        {error instanceof ApiError && error.status === 401 && (
          <a href="/login" target="_blank" rel="noreferrer">
            {words.session.logInElsewhere}
          </a>
        )}
      </span>
    </p>
  );
}

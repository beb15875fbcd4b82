/** Stands in place of what only people who are logged in may see. */
import { Link } from "@tanstack/react-router";
import { buttonClass } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { words } from "#/words";
import { text } from "./words";

export const LogInFirst = () => (
  <EmptyState
    icon="key"
    title={text.reasons.logIn}
    action={
      <Link
        to="/login"
        search={{ next: location.pathname + location.search }}
        className={buttonClass("primary")}
      >
        {words.session.logIn}
      </Link>
    }
  />
);

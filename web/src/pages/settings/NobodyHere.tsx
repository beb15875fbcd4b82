/** In place of a page that belongs to an account: log in, or that there are no accounts here. */
import { Link, useRouterState } from "@tanstack/react-router";
import { buttonClass } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { words } from "#/words";
import { text } from "./words";

export function NobodyHere({ hasLogins }: { hasLogins: boolean }) {
  const path = useRouterState({ select: (state) => state.location.href });
  if (!hasLogins)
    return (
      <EmptyState icon="person" title={text.noLogins}>
        <p>{text.noLoginsHint}</p>
      </EmptyState>
    );
  return (
    <EmptyState
      icon="person"
      title={text.loggedOut}
      action={
        <Link to="/login" search={{ next: path }} className={buttonClass("primary")}>
          {words.session.logIn}
        </Link>
      }
    >
      <p>{text.loggedOutHint}</p>
    </EmptyState>
  );
}

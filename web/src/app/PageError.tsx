/** What stands in place of a page: not there, not readable, or broken. */
import { Link } from "@tanstack/react-router";
import { ApiError } from "#/api/client";
import { Button, buttonClass } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { EmptyState } from "#/design/EmptyState";
import { words } from "#/words";
import { ServerAwayError, serverAnswers } from "./lazyPage";

export function NotFound() {
  return (
    <EmptyState
      icon="help"
      title={words.errors.notFoundTitle}
      action={
        <Link to="/" className={buttonClass("plain")}>
          {words.errors.home}
        </Link>
      }
    >
      <p>{words.errors.notFound}</p>
      <p>{words.errors.notFoundHint}</p>
    </EmptyState>
  );
}

export function PageError({ error: thrown, reset }: { error: unknown; reset: () => void }) {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if (error instanceof ApiError) return <LoadError error={error} onRetry={reset} />;
  if (error instanceof ServerAwayError) return <ServerAway />;
  return (
    <EmptyState
      icon="alert"
      title={words.errors.crashedTitle}
      action={<Button onClick={() => location.reload()}>{words.errors.reload}</Button>}
    >
      <p>{words.errors.crashed}</p>
      <CodeBlock text={`${error.name}: ${error.message}\n${error.stack ?? ""}`.trim()} />
    </EmptyState>
  );
}

function ServerAway() {
  const reload = async () => {
    if (await serverAnswers()) location.reload();
  };
  return (
    <EmptyState
      icon="alert"
      title={words.errors.failedTitle}
      action={<Button onClick={reload}>{words.retry}</Button>}
    >
      <p>{words.errors.away}</p>
    </EmptyState>
  );
}

export function LoadError({ error, onRetry }: { error: Error; onRetry: () => void }) {
  if (error instanceof ApiError && error.status === 404) return <NotFound />;
  return (
    <EmptyState
      icon="alert"
      title={words.errors.failedTitle}
      action={<Button onClick={onRetry}>{words.retry}</Button>}
    >
      <p>{error.message}</p>
    </EmptyState>
  );
}

/** The way to one rollout, by mouse and by key; the filters of the list go along, so that its page can walk it. */
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { RolloutEntry } from "#/api/types";

type Props = {
  runId: string;
  entry: Pick<RolloutEntry, "key" | "number">;
  className?: string | undefined;
  label?: string | undefined;
  search?: object | undefined;
  children: ReactNode;
};

const buildTarget = (runId: string, { key, number }: Props["entry"], search: object = {}) => ({
  to: "/runs/$runId/t/$taskKey/$number" as string,
  params: { runId, taskKey: key, number: String(number) } as never,
  search: search as never,
});

export function RolloutLink({ runId, entry, className, label, search, children }: Props) {
  return (
    <Link {...buildTarget(runId, entry, search)} className={className} aria-label={label} title={label}>
      {children}
    </Link>
  );
}

export function useOpenRollout(runId: string): (entry: Props["entry"], search?: object) => void {
  const navigate = useNavigate();
  return (entry, search) => void navigate(buildTarget(runId, entry, search));
}
